#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "journal/journal.h"
#include "runner/runner.h"
#include "search/trials/history.h"
#include "session/memory_filter.h"

namespace krigtune::run {

/// Returns the outcome of a proposal. It is a predicted OutOfMemory, without a run, if an exact plan does not fit. For
/// the user's guesses this also applies if a plan is not exact; strategies do not propose what cannot fit according to
/// the earlier trials. Otherwise the runner decides. The baseline of a program other than krigtune-bench always runs,
/// because the user trains with it.
inline trial::Outcome run_trial(const session::MemoryFilter& filter, trial::Runner& runner,
                                const journal::Proposal& proposal, const trial::RunContext& context) {
  const bool is_foreseen = filter.is_exact() || proposal.strategy == search::kTryStrategy;
  const std::optional<plan::MemoryVerdict> memory = is_foreseen ? filter.planned(proposal.configuration) : std::nullopt;
  if (memory && memory->verdict == plan::Verdict::kTooLarge) return trial::OutOfMemory{memory->predicted, true};
  return runner.run(proposal.configuration, context);
}
/// Does the same on this machine.
inline trial::Outcome run_trial(const session::MemoryFilter& filter, trial::Runner& runner,
                                const journal::Proposal& proposal, const std::filesystem::path& trial_directory) {
  trial::ThisMachine here;
  return run_trial(filter, runner, proposal, {trial_directory, std::nullopt, here});
}

/// A trial whose runner has finished.
struct FinishedTrial {
  int number = 0;
  trial::Outcome outcome;
  double wall_s = 0.0;
  std::string where = {};  ///< as reported by its place
  /// Its place was lost. The configuration is not at fault, and the pool runs the trial again by itself.
  bool runs_again = false;
  int times_lost = 0;  ///< including this time
};

/// What is needed to start a trial.
struct PooledTrial {
  journal::Trial trial;
  std::filesystem::path directory;
  std::optional<trial::Rival> rival = {};
  trial::TrialNeeds needs = {};
  bool adopted = false;  ///< an earlier process started its program
  int times_lost = 0;    ///< so far, including by earlier processes
  bool in_full = false;  ///< see RunContext
};

/// Runs trials concurrently, each with its own runner in its own thread, at places provided by the executor. A trial
/// whose place was lost runs again before any other begins, at most twice; then it has failed. Only one thread may call
/// its methods. The destructor waits for running trials.
class RunnerPool {
 public:
  /// The arguments must outlive it. It makes one runner immediately, to report missing requirements, and more when they
  /// are needed. `stop`: once true, no trial is run again.
  RunnerPool(const trial::RunnerFactory& make_runner, trial::Executor& executor, const session::MemoryFilter& filter,
             const Clock& clock, const std::atomic<bool>& stop);
  ~RunnerPool();
  RunnerPool(const RunnerPool&) = delete;
  RunnerPool& operator=(const RunnerPool&) = delete;

  /// Returns whether a trial of that size can begin now. Throws UserError if it never can.
  bool has_room(const trial::TrialNeeds& needs) const;
  /// Includes trials that wait to be run again.
  const std::vector<journal::Trial>& running() const { return running_; }
  /// Requires has_room(), except for an adopted trial. Returns where it runs, as far as that is known now.
  std::string start(PooledTrial trial);
  /// Waits at most a fraction of a second for a trial that ends. Rethrows the exception of its runner.
  std::optional<FinishedTrial> wait();

 private:
  struct Slot {
    std::unique_ptr<trial::Runner> runner;
    std::thread thread;  ///< joinable while it runs a trial
    std::unique_ptr<trial::Place> place;
    PooledTrial trial;
    bool is_free() const { return place == nullptr; }
  };
  struct Ended {
    std::size_t slot = 0;
    FinishedTrial trial;
    std::exception_ptr error;
  };
  std::string begin(PooledTrial trial);
  void begin_lost_ones();
  void work(Slot& slot, std::size_t index);
  std::optional<Ended> next_ended();
  void forget(int number);

  trial::RunnerFactory make_runner_;
  trial::Executor& executor_;
  const session::MemoryFilter& filter_;
  const Clock& clock_;
  const std::atomic<bool>& stop_;
  std::deque<Slot> slots_;  ///< slots in use do not move
  std::deque<PooledTrial> lost_;
  std::vector<journal::Trial> running_;
  std::mutex mutex_;  // protects ended_
  std::condition_variable has_ended_;
  std::deque<Ended> ended_;
};

}  // namespace krigtune::run
