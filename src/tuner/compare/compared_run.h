#pragma once
#include "krigtune/tuner/compare.h"
#include "krigtune/tuner/loop.h"

// One run of a comparison: a strategy, a seed, the budget. Private to this layer.
namespace krigtune {

/// What a run is made of; all of it must outlive the run.
struct ComparedJob {
  const Session& session;
  const Candidates& candidates;
  const CompareOptions& options;
  LoopOptions key;
  const RunnerFactory& make_runner;
  const Clock& clock;
};

struct RunHooks {
  const std::atomic<bool>& stop;  ///< once true no trial begins
  std::function<void()> look;     ///< called a few times a second
  std::function<void()> trial_ended;
};

struct RunRows {
  std::vector<ComparedTrial> rows;
  bool whole = false;  ///< it ended at the budget or with the space
};

/// A table's value in the objective's unit.
double in_objective(const Session& session, const Configuration& configuration, double value);

/// For trials that take no time and leave no files.
RunRows run_in_memory(const ComparedJob& job, const RunHooks& hooks);

/// In a run directory of its own, `bayes-1` for strategy bayes and seed 1, where it goes on if it was cut short. Throws
/// EnvironmentError where nothing can run.
RunRows run_on_disk(const ComparedJob& job, const RunHooks& hooks);

}  // namespace krigtune
