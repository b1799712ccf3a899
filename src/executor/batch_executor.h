#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "executor/batch_system.h"
#include "executor/executor.h"
#include "trial/executor.h"

namespace krigtune::executor {

struct BatchOptions {
  int max_queued = 8;                     ///< jobs at a time, waiting or running
  double poll_s = 10.0;                   ///< between two queries of the scheduler, each for all jobs together
  std::optional<double> pending_limit_s;  ///< a job that waits longer is withdrawn; empty: it may wait forever
  /// How long a file or an answer may be late before it counts as missing. NFS remembers for up to a minute that a file
  /// did not exist (nfs(5): acdirmax).
  double patience_s = 60.0;
  /// If true, the time limit of a job is derived from the durations of earlier trials, with a margin; a job that
  /// reaches it is submitted again with the full limit. If false, the limit is always the trial's timeout with a
  /// margin.
  bool learns_time = true;
  /// Called with one line about events that people should see: a job that waits, a scheduler that does not answer.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  const std::atomic<bool>* ending = nullptr;  ///< once true, waiting jobs are withdrawn; must outlive the executor
};

/// Takes the options from the block of a kind that runs trials as jobs. `learns_time` depends on the kind.
template <class Spec>
BatchOptions batch_options_of(const Spec& spec, const ExecutorJob& job) {
  BatchOptions options;
  options.max_queued = spec.max_queued;
  options.poll_s = spec.poll_s;
  options.pending_limit_s = spec.pending_limit_s;
  options.patience_s = spec.patience_s;
  options.ending = job.ending;
  options.say = job.say;
  return options;
}

/// Runs each trial as a job of a scheduler. The job's own files decide about its result, and then the scheduler's
/// answer. Jobs continue without this process, and the next process adopts them. `clock` must outlive the executor.
///
/// The sentences in ProcessResult::lost and start_error name the job, what happened and what to do.
std::unique_ptr<trial::Executor> make_batch_executor(std::unique_ptr<BatchSystem> system, const BatchOptions& options,
                                                     const Clock& clock);

/// Returns the port for the rendezvous of a trial's ranks. It lies below those that Linux assigns by itself (32768 and
/// up) and differs between the trials of a run. Trials of two runs get the same port with a probability of 1 in 12,000.
int rendezvous_port(const trial::TrialTask& task);

/// Returns krigtune-<hash of the run directory>-<trial>, the same in every process that runs this trial.
std::string job_name(const trial::TrialTask& task);

}  // namespace krigtune::executor
