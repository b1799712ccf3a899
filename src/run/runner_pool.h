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
#include "run/tuner.h"
#include "runner/runner.h"
#include "search/strategies/strategy.h"
#include "session/memory_filter.h"

namespace krigtune::run {

/// What becomes of a proposal: out of memory, foreseen, without a run where the plan knows it, of the user's guesses
/// also where it only expects it (strategies ask nothing that cannot fit, as far as the trials before say); else what
/// the runner says. The baseline of a program other than ours is run whatever is planned: the user trains with it.
inline trial::Outcome run_trial(const session::MemoryFilter& filter, trial::Runner& runner,
                                const journal::Proposal& proposal, const trial::RunContext& context) {
  const bool is_foreseen = filter.is_exact() || proposal.strategy == search::kTryStrategy;
  const std::optional<plan::MemoryVerdict> memory = is_foreseen ? filter.planned(proposal.configuration) : std::nullopt;
  if (memory && memory->verdict == plan::Verdict::kTooLarge) return trial::OutOfMemory{memory->predicted, true};
  return runner.run(proposal.configuration, context);
}
/// The same on this machine.
inline trial::Outcome run_trial(const session::MemoryFilter& filter, trial::Runner& runner,
                                const journal::Proposal& proposal, const std::filesystem::path& trial_directory) {
  trial::ThisMachine here;
  return run_trial(filter, runner, proposal, {trial_directory, std::nullopt, here});
}

/// A trial that a runner is done with.
struct FinishedTrial {
  int number = 0;
  trial::Outcome outcome;
  double wall_s = 0.0;
  std::string where = {};  ///< as its place says it
  /// Its place was lost: it is no fault of the configuration, and the trial is run again by itself.
  bool runs_again = false;
  int times_lost = 0;  ///< this time included
};

/// What a trial is started with.
struct PooledTrial {
  journal::Trial trial;
  std::filesystem::path directory;
  std::optional<trial::Rival> rival = {};
  trial::TrialNeeds needs = {};
  bool adopted = false;  ///< an earlier process has started its program
  int times_lost = 0;    ///< so far, also by earlier processes
};

/// Runs trials at the same time, each by a runner of its own in a thread of its own, at places that the executor gives.
/// A trial whose place was lost is run again before any other begins, twice at most; then it has failed.
/// Its methods are for one thread; the destructor waits for what runs.
class RunnerPool {
 public:
  /// They must outlive it. Makes one runner at once, so that what it lacks shows, and more as they are needed. `stop`:
  /// once true, nothing is run again.
  RunnerPool(const trial::RunnerFactory& make_runner, trial::Executor& executor, const session::MemoryFilter& filter,
             const Clock& clock, const std::atomic<bool>& stop);
  ~RunnerPool();
  RunnerPool(const RunnerPool&) = delete;
  RunnerPool& operator=(const RunnerPool&) = delete;

  /// Whether a trial of that size can begin now. Throws UserError where it never can.
  bool has_room(const trial::TrialNeeds& needs) const;
  /// Those that wait to be run again included.
  const std::vector<journal::Trial>& running() const { return running_; }
  /// has_room() must hold, but for an adopted trial. Returns where it runs, as far as that is known now.
  std::string start(PooledTrial trial);
  /// Waits a fraction of a second at most for one that ends. Throws what its runner threw.
  std::optional<FinishedTrial> wait();

 private:
  struct Slot {
    std::unique_ptr<trial::Runner> runner;
    std::thread thread;  ///< joinable while a trial is in it
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
  std::deque<Slot> slots_;  ///< those in use stay where they are
  std::deque<PooledTrial> lost_;
  std::vector<journal::Trial> running_;
  std::mutex mutex_;  // of ended_
  std::condition_variable has_ended_;
  std::deque<Ended> ended_;
};

/// What the trial, which is about to run, has to beat: the best measured so far in its own run. Empty for those whose
/// number is wanted in any case (the baseline, the user's guesses, what was measured before), and while nothing is
/// measured in it.
std::optional<trial::Rival> rival_of(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const journal::Trial& trial);

}  // namespace krigtune::run
