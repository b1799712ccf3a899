#include "search/trials/history.h"

#include <algorithm>

namespace krigtune::search {
namespace {

bool has_failed_by(const journal::Trial& trial, trial::FailureReason reason) {
  const auto* failed = trial.outcome ? std::get_if<trial::Failed>(&*trial.outcome) : nullptr;
  return failed != nullptr && failed->reason == reason;
}

}  // namespace

bool is_interrupted(const journal::Trial& trial) { return has_failed_by(trial, trial::FailureReason::kInterrupted); }

bool counts(const journal::Trial& trial) {
  return !trial.waiting && trial.passed_over.empty() && !is_interrupted(trial) &&
         !has_failed_by(trial, trial::FailureReason::kEnvironment);
}

bool is_closed(const journal::Trial& trial) { return trial.outcome && counts(trial); }

const journal::Trial* find_trial(const History& history, std::int64_t number) {
  const auto found =
      std::find_if(history.begin(), history.end(), [&](const journal::Trial& trial) { return trial.number == number; });
  return found == history.end() ? nullptr : &*found;
}

int closed_trials(const History& history) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), [](const journal::Trial& trial) {
    const std::string& by = trial.proposal.strategy;
    return is_closed(trial) && by != kTogetherStrategy && by != kAloneStrategy && by != kRepeatStrategy;
  }));
}

int counted_trials(const History& history) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), counts));
}

std::optional<double> value_of(const journal::Trial& trial, const session::Objective& objective) {
  const auto* measured = trial.outcome ? std::get_if<trial::Measured>(&*trial.outcome) : nullptr;
  if (measured == nullptr) return std::nullopt;
  const auto found = measured->metrics.find(objective.field);
  return found == measured->metrics.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace krigtune::search
