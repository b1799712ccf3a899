#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/tuner/forecast.h"

namespace krigtune {

/// How many configurations may run, as far as is known.
struct VerdictCounts {
  std::int64_t fit = 0;
  std::int64_t uncertain = 0;
  std::int64_t too_large = 0;
  std::int64_t unknown = 0;      ///< memory is not modelled
  double expected_to_run = 0.0;  ///< of the uncertain ones: the sum of their probabilities

  std::int64_t all() const { return fit + uncertain + too_large + unknown; }
  void add(const std::optional<MemoryVerdict>& memory);
};

/// The memory of the configurations of one ZeRO stage.
struct StageMemory {
  VerdictCounts counts;
  Bytes smallest;  ///< expected peaks
  Bytes largest;
  /// The fastest that fits more likely than not; where there is none or no time is known, of the smallest micro-batch
  /// the one with the smallest peak.
  Configuration example;
};

/// A configuration with what is predicted of it.
struct Candidate {
  Configuration configuration;
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
PlanStudy study_plan(const Session& session, const Forecaster& forecaster, const StudyOptions& options);

}  // namespace krigtune
