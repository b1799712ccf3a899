#include "run/runner_pool.h"

#include <algorithm>
#include <chrono>

namespace krigtune::run {

namespace {

constexpr int kTimesRunAgain = 2;

bool is_lost(const trial::Outcome& outcome) {
  const auto* failed = std::get_if<trial::Failed>(&outcome);
  return failed != nullptr && failed->reason == trial::FailureReason::kLost;
}

// An adopted trial began before this process did.
double wall_s_of(const PooledTrial& pooled, double begun_s, const Clock& clock) {
  const std::optional<std::int64_t> began_us = unix_us_of(pooled.trial.started_at);
  if (!pooled.adopted || !began_us) return clock.now_s() - begun_s;
  return std::max(static_cast<double>(clock.unix_us() - *began_us) * 1e-6, 0.0);
}

}  // namespace

RunnerPool::RunnerPool(const trial::RunnerFactory& make_runner, trial::Executor& executor,
                       const session::MemoryFilter& filter, const Clock& clock, const std::atomic<bool>& stop)
    : make_runner_(make_runner), executor_(executor), filter_(filter), clock_(clock), stop_(stop) {
  slots_.emplace_back();
  slots_.back().runner = make_runner_();
}

RunnerPool::~RunnerPool() {
  for (Slot& slot : slots_) {
    if (slot.thread.joinable()) slot.thread.join();
  }
}

bool RunnerPool::has_room(const trial::TrialNeeds& needs) const { return lost_.empty() && executor_.has_room(needs); }

std::string RunnerPool::start(PooledTrial trial) {
  running_.push_back(trial.trial);
  return begin(std::move(trial));
}

std::string RunnerPool::begin(PooledTrial trial) {
  auto slot = std::find_if(slots_.begin(), slots_.end(), [](const Slot& one) { return one.is_free(); });
  if (slot == slots_.end()) {
    slots_.emplace_back();
    slot = std::prev(slots_.end());
    slot->runner = make_runner_();
  }
  const int number = trial.trial.number;
  const auto index = static_cast<std::size_t>(slot - slots_.begin());
  try {
    slot->place = executor_.place({number, trial.directory, trial.needs, trial.adopted});
    slot->trial = std::move(trial);
    std::string where = slot->place->where();
    slot->thread = std::thread([this, &slot = *slot, index] { work(slot, index); });
    return where;
  } catch (...) {  // without a place or a thread it does not run, and nobody may wait for its end
    slot->place.reset();
    forget(number);
    throw;
  }
}

// The oldest comes first; one without room holds back the others.
void RunnerPool::begin_lost_ones() {
  while (!lost_.empty() && !stop_ && executor_.has_room(lost_.front().needs)) {
    PooledTrial again = std::move(lost_.front());
    lost_.pop_front();
    begin(std::move(again));
  }
}

void RunnerPool::work(Slot& slot, std::size_t index) {
  const PooledTrial& pooled = slot.trial;
  Ended ended;
  ended.slot = index;
  ended.trial.number = pooled.trial.number;
  try {
    const double begun_s = clock_.now_s();
    ended.trial.outcome = run_trial(filter_, *slot.runner, pooled.trial.proposal,
                                    {pooled.directory, pooled.rival, *slot.place, pooled.adopted, pooled.in_full});
    ended.trial.wall_s = slot.place->account().ran_s.value_or(wall_s_of(pooled, begun_s, clock_));
  } catch (...) {
    ended.error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ended_.push_back(std::move(ended));
  has_ended_.notify_one();
}

std::optional<RunnerPool::Ended> RunnerPool::next_ended() {
  constexpr std::chrono::milliseconds kTick{200};
  std::unique_lock lock(mutex_);
  if (!has_ended_.wait_for(lock, kTick, [this] { return !ended_.empty(); })) return std::nullopt;
  Ended ended = std::move(ended_.front());
  ended_.pop_front();
  return ended;
}

std::optional<FinishedTrial> RunnerPool::wait() {
  begin_lost_ones();
  if (!lost_.empty() && stop_) {  // there is no time to run it again
    FinishedTrial given_up;
    given_up.number = lost_.front().trial.number;
    given_up.outcome = trial::Failed{trial::FailureReason::kInterrupted, 0, ""};
    lost_.pop_front();
    forget(given_up.number);
    return given_up;
  }
  std::optional<Ended> ended = next_ended();
  if (!ended) return std::nullopt;
  Slot& slot = slots_[ended->slot];
  slot.thread.join();
  ended->trial.where = slot.place->where();
  const bool was_begun = slot.place->account().was_begun;
  slot.place.reset();
  if (ended->error) {
    forget(ended->trial.number);
    std::rethrow_exception(ended->error);
  }
  if (is_lost(ended->trial.outcome) && was_begun) ++slot.trial.times_lost;
  ended->trial.times_lost = slot.trial.times_lost;
  ended->trial.runs_again = is_lost(ended->trial.outcome) && slot.trial.times_lost <= kTimesRunAgain;
  if (ended->trial.runs_again) {
    slot.trial.adopted = false;
    lost_.push_back(std::move(slot.trial));
  } else {
    forget(ended->trial.number);
  }
  return ended->trial;
}

void RunnerPool::forget(int number) {
  std::erase_if(running_, [number](const journal::Trial& trial) { return trial.number == number; });
}

}  // namespace krigtune::run
