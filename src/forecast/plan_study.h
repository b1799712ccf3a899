#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.h"

namespace krigtune::forecast {

/// How many configurations may run, as far as is known.
struct VerdictCounts {
  std::int64_t fit = 0;
  std::int64_t uncertain = 0;
  std::int64_t too_large = 0;
  std::int64_t unknown = 0;      ///< memory is not modelled
  double expected_to_run = 0.0;  ///< of the uncertain ones: the sum of their probabilities

  std::int64_t all() const { return fit + uncertain + too_large + unknown; }
  void add(const std::optional<plan::MemoryVerdict>& memory);
};

/// The memory of the configurations of one ZeRO stage.
struct StageMemory {
  VerdictCounts counts;
  Bytes smallest;  ///< expected peaks
  Bytes largest;
  /// The fastest that fits more likely than not; where there is none or no time is known, of the smallest micro-batch
  /// the one with the smallest peak.
  space::Configuration example;
};

/// A configuration with what is predicted of it.
struct Candidate {
  space::Configuration configuration;
  Forecast forecast;
  std::int64_t similar = 0;  ///< of the best: so many others differ in one parameter and by less than 0.5 %
};

/// What is known of a session before anything runs.
struct PlanStudy {
  std::int64_t lattice = 0;
  std::vector<std::pair<std::string, std::int64_t>> excluded;  ///< points of the lattice by reason
  std::int64_t same_meaning = 0;  ///< points that differ from another configuration only in knobs without effect
  std::optional<std::int64_t> configurations;  ///< empty: a space with continuous parameters cannot be counted
  VerdictCounts counts;                        ///< of all that were looked at
  std::map<std::int64_t, StageMemory> stages;  ///< by zero_stage; empty where memory is not known
  /// The largest scores of those that fit more likely than not; where there are none, of those that may fit.
  std::vector<Candidate> best;
  std::optional<Candidate> best_without_limit;  ///< whatever memory it takes
  std::vector<double> step_times_s;             ///< of all that may fit, ascending

  std::int64_t looked_at() const { return counts.all(); }
  bool is_sample() const { return configurations != looked_at(); }
};

struct StudyOptions {
  /// Called for every configuration that is looked at, in order.
  std::function<void(const Candidate&)> visit;
  /// Called now and then: so many were looked at, of so many.
  std::function<void(std::int64_t, std::int64_t)> progress;
  unsigned threads = 1;
};

/// Looks at every configuration, in a space of more than a million (or without end) at a random sample. The result does
/// not depend on the number of threads.
PlanStudy study_plan(const session::Session& session, const Forecaster& forecaster, const StudyOptions& options);

/// Where the memory of a configuration goes.
struct MemoryTerms {
  std::array<std::int64_t, schedule::kTermCount> term_bytes{};
  std::int64_t other_bytes = 0;  ///< context, communicators, fragmentation
  Bytes peak;                    ///< the sum
  std::string peak_at;           ///< "backward of block 3"
};
/// To the byte with krigtune-bench. Empty where memory is not modelled.
std::optional<MemoryTerms> memory_terms(const session::Session& session, const session::MemoryFilter& filter,
                                        const space::Configuration& configuration);

/// What a configuration would gain from another machine.
struct WhatIf {
  std::string change;  ///< "network between nodes twice as fast"
  double gain = 1.0;   ///< in speed: 1.3 is 30 % faster
};
/// Everything twice as fast in turn, the largest gain first.
std::vector<WhatIf> what_ifs(const session::Session& session, const Forecaster& forecaster, const Candidate& candidate);

/// A configuration with one parameter changed.
struct Variant {
  space::Value value;
  Candidate candidate;
};
/// All values of the parameter that the session's space holds, the others as they are; those that the batch or the
/// models do not allow are left out. Empty where the space has no such parameter.
std::vector<Variant> variants(const session::Session& session, const Forecaster& forecaster,
                              const space::Configuration& configuration, const std::string& parameter);

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
BatchAnswer batch_answer(const session::Session& session, const Forecaster& forecaster,
                         const space::Configuration& configuration);

/// What the session will take.
struct ExpectedTime {
  std::int64_t trials = 0;              ///< at most
  std::optional<double> trials_s;       ///< of them all; empty: nobody knows how long a trial takes
  std::optional<double> most_trials_s;  ///< by the time limits of trials and budget
};
ExpectedTime expected_time(const session::Session& session, const PlanStudy& study);

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
PlanAnswers answers_of(const session::Session& session, const session::MemoryFilter& filter,
                       const Forecaster& forecaster, const PlanStudy& study);

}  // namespace krigtune::forecast
