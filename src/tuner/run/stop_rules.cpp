#include "run/stop_rules.h"

#include "krigtune/tuner/best.h"

namespace krigtune {
namespace {

constexpr double kSecondsPerHour = 3600.0;
constexpr int kEnvironmentFailures = 3;  // in a row: nothing will run here

// A trial asked by hand lasts from `ask` to `tell`: that is the user's time, and no budget's.
double hours_spent(const History& history) {
  double seconds = 0.0;
  for (const Trial& trial : history) {
    seconds += trial.proposal.suggest_s;
    if (trial.proposal.asker == Asker::kTune) seconds += trial.wall_s;
  }
  return seconds / kSecondsPerHour;
}

}  // namespace

std::optional<EndReason> budget_is_spent(const Session& session, const History& history) {
  const Budget& budget = session.budget;
  if (closed_trials(history) >= budget.trials) return EndReason::kTrials;
  const double hours = hours_spent(history);
  if (budget.hours && hours >= *budget.hours) return EndReason::kHours;
  if (budget.gpu_hours && hours * static_cast<double>(session.cluster.ranks()) >= *budget.gpu_hours) {
    return EndReason::kHours;
  }
  if (budget.patience && trials_without_gain(session.objective, history) >= *budget.patience) {
    return EndReason::kPatience;
  }
  return std::nullopt;
}

std::optional<std::string> environment_failure(const History& history) {
  int in_a_row = 0;
  std::optional<std::string> last;
  for (auto trial = history.rbegin(); trial != history.rend(); ++trial) {
    if (!trial->outcome || trial->proposal.asker != Asker::kTune) continue;
    const auto* failed = std::get_if<Failed>(&*trial->outcome);
    if (failed == nullptr || failed->reason != FailureReason::kEnvironment) break;
    if (!last) last = failed->last_lines;
    if (++in_a_row == kEnvironmentFailures) return last;
  }
  return std::nullopt;
}

}  // namespace krigtune
