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
  int max_queued = 8;                     ///< jobs at a time: waiting and running
  double poll_s = 10.0;                   ///< between two questions to the scheduler, for all jobs together
  std::optional<double> pending_limit_s;  ///< a job that waits longer is taken back; empty: it may wait for ever
  /// How long a file or an answer may be late before it is believed to be missing: NFS remembers for up to a minute
  /// that a file was not there (nfs(5): acdirmax).
  double patience_s = 60.0;
  /// The jobs' time limit is what the trials took so far, with room; a job that reaches it is submitted again with the
  /// full one. False: always the trial's timeout with a margin.
  bool learns_time = true;
  /// What people should hear of: a job that waits, a scheduler that does not answer.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  const std::atomic<bool>* ending = nullptr;  ///< once true, jobs that wait are taken back; must outlive the executor
};

/// As the block of a kind that runs trials as jobs says; `learns_time` is the kind's own.
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

/// Trials as jobs of a scheduler, one each. A job's own files decide what became of it, then the scheduler's word; jobs
/// go on without this process, and the next one adopts them. `clock` must outlive it.
///
/// The sentences of ProcessResult::lost and start_error name the job, what happened and what to do.
std::unique_ptr<trial::Executor> make_batch_executor(std::unique_ptr<BatchSystem> system, const BatchOptions& options,
                                                     const Clock& clock);

/// For the rendezvous of a trial's ranks: below those that Linux gives out by itself (from 32768 on), another one for
/// each trial of a run, and by chance (one in 12,000) that of a trial of another run.
int rendezvous_port(const trial::TrialTask& task);

/// krigtune-<hash of the run directory>-<trial>: the same in every process that runs this trial.
std::string job_name(const trial::TrialTask& task);

}  // namespace krigtune::executor
