#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.h"

namespace krigtune::forecast {

/// How many configurations fit into memory.
struct VerdictCounts {
  std::int64_t fit = 0;
  std::int64_t uncertain = 0;
  std::int64_t too_large = 0;
  std::int64_t unknown = 0;      ///< memory is not modelled
  double expected_to_run = 0.0;  ///< sum of the probabilities of the uncertain ones

  std::int64_t all() const { return fit + uncertain + too_large + unknown; }
  void add(const std::optional<plan::MemoryVerdict>& memory);
};

/// The memory of the configurations of one ZeRO stage.
struct StageMemory {
  VerdictCounts counts;
  Bytes smallest;  ///< smallest expected peak
  Bytes largest;
  /// The fastest configuration that probably fits. If there is none or no time is known: among those of the smallest
  /// micro-batch, the one with the smallest peak.
  space::Configuration example;
};

/// A configuration with its predictions.
struct Candidate {
  space::Configuration configuration;
  Forecast forecast;
  std::int64_t similar = 0;  ///< for the best ones: how many others differ in one parameter and by less than 0.5 %
};

/// What is known about a session before any trial runs.
struct PlanStudy {
  std::int64_t lattice = 0;
  std::vector<std::pair<std::string, std::int64_t>> excluded;  ///< points of the lattice by reason
  /// Points that are equivalent to another configuration because they differ only in knobs without effect.
  std::int64_t same_meaning = 0;
  std::optional<std::int64_t> configurations;  ///< empty: a space with continuous parameters cannot be counted
  VerdictCounts counts;                        ///< over all configurations that were examined
  std::map<std::int64_t, StageMemory> stages;  ///< by zero_stage; empty if memory is unknown
  /// The largest scores among the configurations that probably fit; if there are none, those that are likeliest to fit.
  std::vector<Candidate> best;
  std::size_t analysed = 0;  ///< index in `best` of the fastest one that surely fits; 0 if there is none
  std::optional<Candidate> best_without_limit;  ///< regardless of its memory
  std::vector<double> step_times_s;             ///< of all that may fit, ascending

  std::int64_t looked_at() const { return counts.all(); }
  bool is_sample() const { return configurations != looked_at(); }
  bool best_probably_fit() const;  ///< `best` are more likely to fit than not
  /// Returns whether nothing fits: every configuration is too large, or so likely to be that not even one is expected
  /// to fit.
  bool nothing_fits() const { return counts.fit + counts.unknown == 0 && counts.expected_to_run < 0.5; }
  /// Requires that `best` is not empty.
  const Candidate& analysed_candidate() const { return best[analysed]; }
};

/// Returns how many configurations of a space are examined that has `count` of them (empty: it cannot be counted): all
/// or, of more than a million, a random sample.
std::int64_t examined_count(std::optional<std::int64_t> count);
/// Visits these configurations. The sample is always the same.
void for_each_examined(const space::Space& space, std::optional<std::int64_t> count,
                       const std::function<void(const space::Configuration&)>& visit);

struct StudyOptions {
  /// Called for every configuration that is examined, in order.
  std::function<void(const Candidate&)> visit;
  /// Called from time to time with the number examined and the total.
  std::function<void(std::int64_t, std::int64_t)> progress;
  unsigned threads = 1;
};

/// Examines every configuration or, if the space has more than a million or is continuous, a random sample. The result
/// does not depend on the number of threads.
PlanStudy study_plan(const session::Session& session, const Forecaster& forecaster, const StudyOptions& options);

/// Where the memory of a configuration goes.
struct MemoryTerms {
  std::array<std::int64_t, schedule::kTermCount> term_bytes{};
  std::int64_t other_bytes = 0;  ///< context, communicators, fragmentation
  Bytes peak;                    ///< the sum
  std::string peak_at;           ///< "backward of block 3"
};
/// Returns the terms, exact to the byte with krigtune-bench. Empty if memory is not modelled.
std::optional<MemoryTerms> memory_terms(const session::Session& session, const session::MemoryFilter& filter,
                                        const space::Configuration& configuration);

/// What a configuration would gain from another machine.
struct WhatIf {
  std::string change;  ///< "network between nodes twice as fast"
  double gain = 1.0;   ///< factor on the speed: 1.3 is 30 % faster
};
/// Makes one part of the machine after the other twice as fast. The largest gain is first.
std::vector<WhatIf> what_ifs(const session::Session& session, const Forecaster& forecaster, const Candidate& candidate);

/// A configuration with one parameter changed.
struct Variant {
  space::Value value;
  Candidate candidate;
};
/// Tries all values of the parameter that the session's space contains, with the other parameters unchanged, and leaves
/// out values that the batch or the models do not allow. Empty if the space has no such parameter.
std::vector<Variant> variants(const session::Session& session, const Forecaster& forecaster,
                              const space::Configuration& configuration, const std::string& parameter);

/// One step of a growing batch.
struct BatchRow {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  std::int64_t sequences = 1;  ///< of one optimizer step
  Forecast forecast;
  bool plateau = false;  ///< from here on less than 5 % is gained, as far as memory allows
};
struct BatchAnswer {
  std::vector<BatchRow> by_micro_batch;   ///< growing micro-batch
  std::vector<BatchRow> by_accumulation;  ///< growing accumulation; empty if the batch is fixed
};
/// Keeps the other values of `configuration`. It also tries values outside the space: accumulation by powers of two.
BatchAnswer batch_answer(const session::Session& session, const Forecaster& forecaster,
                         const space::Configuration& configuration);

/// How long the session will take.
struct ExpectedTime {
  std::int64_t trials = 0;              ///< upper limit
  std::optional<double> trials_s;       ///< for all trials; empty if the time of a trial is unknown
  std::optional<double> most_trials_s;  ///< from the time limits of trials and budget
};
ExpectedTime expected_time(const session::Session& session, const PlanStudy& study);

/// All the answers above for study.analysed_candidate(); empty if no time is known.
struct PlanAnswers {
  std::map<std::int64_t, MemoryTerms> terms;  ///< for the example of each ZeRO stage
  std::optional<Candidate> baseline;          ///< set if its time is known
  std::vector<WhatIf> what_ifs;
  std::vector<Variant> by_zero_stage;
  std::vector<Variant> by_tensor_parallel;
  BatchAnswer batch;
  ExpectedTime time;
};
PlanAnswers answers_of(const session::Session& session, const session::MemoryFilter& filter,
                       const Forecaster& forecaster, const PlanStudy& study);

}  // namespace krigtune::forecast
