#pragma once
#include <array>
#include <string>
#include <vector>

#include "krigtune/tuner/plan_study.h"

namespace krigtune {

/// Where the memory of a configuration goes.
struct MemoryTerms {
  std::array<std::int64_t, kTermCount> term_bytes{};
  std::int64_t other_bytes = 0;  ///< context, communicators, fragmentation
  Bytes peak;                    ///< the sum
  std::string peak_at;           ///< "backward of block 3"
};
/// To the byte with krigtune-bench. Empty where memory is not modelled.
std::optional<MemoryTerms> memory_terms(const Session& session, const MemoryFilter& filter,
                                        const Configuration& configuration);

/// What a configuration would gain from another machine.
struct WhatIf {
  std::string change;  ///< "network between nodes twice as fast"
  double gain = 1.0;   ///< in speed: 1.3 is 30 % faster
};
/// Everything twice as fast in turn, the largest gain first.
std::vector<WhatIf> what_ifs(const Session& session, const Forecaster& forecaster, const Candidate& candidate);

/// A configuration with one parameter changed.
struct Variant {
  Value value;
  Candidate candidate;
};
/// All values of the parameter that the session's space holds, the others as they are; those that the batch or the
/// models do not allow are left out. Empty where the space has no such parameter.
std::vector<Variant> variants(const Session& session, const Forecaster& forecaster, const Configuration& configuration,
                              const std::string& parameter);

/// One step of growth of the batch.
struct BatchRow {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  std::int64_t sequences = 1;  ///< of an optimizer step
  Forecast forecast;
  bool plateau = false;  ///< from here on less than 5 % is gained, as far as memory allows
};
struct BatchAnswer {
  std::vector<BatchRow> by_micro_batch;   ///< micro-batch grows
  std::vector<BatchRow> by_accumulation;  ///< accumulation grows; empty where the batch is kept
};
/// The others as in `configuration`. What the space does not hold is tried as well: accumulation by powers of two.
BatchAnswer batch_answer(const Session& session, const Forecaster& forecaster, const Configuration& configuration);

/// What the session will take.
struct ExpectedTime {
  std::int64_t trials = 0;              ///< at most
  std::optional<double> trials_s;       ///< of them all; empty: nobody knows how long a trial takes
  std::optional<double> most_trials_s;  ///< by the time limits of trials and budget
};
ExpectedTime expected_time(const Session& session, const PlanStudy& study);

/// Everything above, of the best configuration that was found; empty where no time is known.
struct PlanAnswers {
  std::map<std::int64_t, MemoryTerms> terms;  ///< of the example of each ZeRO stage
  std::optional<Candidate> baseline;          ///< where its time is known
  std::vector<WhatIf> what_ifs;
  std::vector<Variant> by_zero_stage;
  std::vector<Variant> by_tensor_parallel;
  BatchAnswer batch;
  ExpectedTime time;
};
PlanAnswers answers_of(const Session& session, const MemoryFilter& filter, const Forecaster& forecaster,
                       const PlanStudy& study);

}  // namespace krigtune
