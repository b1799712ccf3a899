#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
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
                                const journal::Proposal& proposal, const std::filesystem::path& trial_directory,
                                const std::optional<trial::Rival>& rival = {}) {
  const bool is_foreseen = filter.is_exact() || proposal.strategy == search::kTryStrategy;
  const std::optional<plan::MemoryVerdict> memory = is_foreseen ? filter.planned(proposal.configuration) : std::nullopt;
  if (memory && memory->verdict == plan::Verdict::kTooLarge) return trial::OutOfMemory{memory->predicted, true};
  return runner.run(proposal.configuration, trial_directory, rival);
}

/// A trial that a runner is done with.
struct FinishedTrial {
  int number = 0;
  trial::Outcome outcome;
  double wall_s = 0.0;
};

/// Runs up to so many trials at the same time, each by a runner of its own in a thread of its own.
/// Its methods are for one thread; the destructor waits for what runs.
class RunnerPool {
 public:
  /// `filter` and `clock` must outlive it.
  RunnerPool(const trial::RunnerFactory& make_runner, int jobs, const session::MemoryFilter& filter,
             const Clock& clock);
  ~RunnerPool();
  RunnerPool(const RunnerPool&) = delete;
  RunnerPool& operator=(const RunnerPool&) = delete;

  bool has_room() const { return running_.size() < slots_.size(); }
  const std::vector<journal::Trial>& running() const { return running_; }
  /// has_room() must hold.
  void start(const journal::Trial& trial, const std::filesystem::path& trial_directory,
             const std::optional<trial::Rival>& rival);
  /// Waits a fraction of a second at most for one that ends. Throws what its runner threw.
  std::optional<FinishedTrial> wait();

 private:
  struct Slot {
    std::unique_ptr<trial::Runner> runner;
    std::thread thread;  ///< joinable while a trial is in it
    int trial = -1;
  };
  struct Ended {
    std::size_t slot = 0;
    FinishedTrial trial;
    std::exception_ptr error;
  };
  void work(std::size_t slot, const journal::Trial& trial, const std::filesystem::path& trial_directory,
            const std::optional<trial::Rival>& rival);

  const session::MemoryFilter& filter_;
  const Clock& clock_;
  std::vector<Slot> slots_;
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
