#include "run/runner_pool.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "run/tuner.h"
#include "search/trials/objective_scale.h"

namespace krigtune::run {

RunnerPool::RunnerPool(const trial::RunnerFactory& make_runner, int jobs, const session::MemoryFilter& filter,
                       const Clock& clock)
    : filter_(filter), clock_(clock) {
  for (int i = 0; i < std::max(jobs, 1); ++i) slots_.push_back({make_runner(), {}, -1});
}

RunnerPool::~RunnerPool() {
  for (Slot& slot : slots_) {
    if (slot.thread.joinable()) slot.thread.join();
  }
}

void RunnerPool::start(const journal::Trial& trial, const std::filesystem::path& trial_directory,
                       const std::optional<trial::Rival>& rival) {
  const auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.trial < 0; });
  const auto slot = static_cast<std::size_t>(free - slots_.begin());
  running_.push_back(trial);
  free->trial = trial.number;
  free->thread = std::thread([=, this] { work(slot, trial, trial_directory, rival); });
}

void RunnerPool::work(std::size_t slot, const journal::Trial& trial, const std::filesystem::path& trial_directory,
                      const std::optional<trial::Rival>& rival) {
  Ended ended;
  ended.slot = slot;
  ended.trial.number = trial.number;
  try {
    const double begun_s = clock_.now_s();
    ended.trial.outcome = run_trial(filter_, *slots_[slot].runner, trial.proposal, trial_directory, rival);
    ended.trial.wall_s = clock_.now_s() - begun_s;
  } catch (...) {
    ended.error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ended_.push_back(std::move(ended));
  has_ended_.notify_one();
}

std::optional<FinishedTrial> RunnerPool::wait() {
  constexpr std::chrono::milliseconds kTick{200};
  std::unique_lock lock(mutex_);
  if (!has_ended_.wait_for(lock, kTick, [this] { return !ended_.empty(); })) return std::nullopt;
  const Ended ended = std::move(ended_.front());
  ended_.pop_front();
  lock.unlock();
  Slot& slot = slots_[ended.slot];
  slot.thread.join();
  slot.trial = -1;
  running_.erase(std::find_if(running_.begin(), running_.end(),
                              [&](const journal::Trial& trial) { return trial.number == ended.trial.number; }));
  if (ended.error) std::rethrow_exception(ended.error);
  return ended.trial;
}

std::optional<trial::Rival> rival_of(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const journal::Trial& trial) {
  if (trial.proposal.strategy == search::kBaselineStrategy || trial.proposal.strategy == search::kTryStrategy)
    return std::nullopt;
  const std::string key = candidates.key(trial.proposal.configuration);
  const journal::Trial* best = nullptr;
  for (const journal::Trial& other : history) {
    const std::optional<double> value = search::value_of(other, session.objective);
    if (!value) continue;
    if (candidates.key(other.proposal.configuration) == key) return std::nullopt;
    if (other.proposal.run != trial.proposal.run) continue;  // by another clock
    if (best == nullptr || session.objective.better(*value, *search::value_of(*best, session.objective))) best = &other;
  }
  if (best == nullptr) return std::nullopt;
  const double value = *search::value_of(*best, session.objective);
  const search::TrialNoise noise(session.objective, history);
  const double between = noise.between_fraction() * value;
  // Of the best one's run, and of the run that is compared with it.
  const double of_the_best = std::hypot(std::get<trial::Measured>(*best->outcome).value_sem, between);
  return trial::Rival{session.objective.field, session.objective.maximize, value, std::hypot(of_the_best, between)};
}

}  // namespace krigtune::run
