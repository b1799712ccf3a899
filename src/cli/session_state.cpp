#include "session_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "krigtune/core/text.h"
#include "krigtune/core/units.h"
#include "krigtune/report/labels.h"
#include "krigtune/tuner/loop.h"
#include "krigtune/tuner/run_effects.h"

namespace krigtune {
namespace {

constexpr double kSecondsPerHour = 3600.0;

bool is_closed(const Trial& trial) { return trial.outcome && counts(trial); }

std::string class_of(const Outcome& outcome) {
  const std::string reason = reason_text(outcome);
  return reason.empty() ? status_text(outcome) : fmt::format("{} ({})", status_text(outcome), reason);
}

}  // namespace

std::vector<ClassCount> counts_by_class(const History& history) {
  std::vector<ClassCount> counts = {{"ok"}};
  for (const Trial& trial : history) {
    if (!is_closed(trial)) continue;
    const std::string name = class_of(*trial.outcome);
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const ClassCount& c) { return c.name == name; });
    if (found == counts.end()) {
      counts.push_back({name, 1, trial.number});
    } else {
      ++found->count;
    }
  }
  std::stable_sort(counts.begin() + 1, counts.end(),
                   [](const ClassCount& a, const ClassCount& b) { return a.count > b.count; });
  if (counts.front().count == 0) counts.erase(counts.begin());
  return counts;
}

std::string text_of(const std::vector<ClassCount>& counts) {
  std::vector<std::string> parts;
  for (const ClassCount& one : counts) parts.push_back(fmt::format("{} {}", one.count, one.name));
  return parts.empty() ? "none" : join(parts, ", ");
}

std::optional<Trial> best_trial(const Objective& objective, const History& history) {
  std::optional<MeasuredMean> best;
  for (const MeasuredMean& mean : measured_means(objective, history)) {
    if (!best || objective.better(mean.value, best->value)) best = mean;
  }
  return best ? std::optional(history[best->best]) : std::nullopt;
}

std::string gain_text_of(const Objective& objective, double value, const History& history) {
  const std::optional<Trial> reference = reference_trial(objective, history);
  return reference ? gain_text(gain_over(objective, value, *RunEffects(objective, history).value_of(*reference))) : "";
}

std::optional<double> seconds_left(const Session& session, const History& history, int at_a_time) {
  const auto ours = std::count_if(history.begin(), history.end(), [](const Trial& trial) {
    return is_closed(trial) && trial.proposal.asker == Asker::kTune;
  });
  if (ours == 0) return std::nullopt;
  const double spent_s = seconds_spent(history);
  double left_s = spent_s / static_cast<double>(ours) * std::max(session.budget.trials - closed_trials(history), 0);
  if (session.budget.hours) left_s = std::min(left_s, *session.budget.hours * kSecondsPerHour - spent_s);
  return std::max(left_s, 0.0) / std::max(at_a_time, 1);
}

std::string last_line_of(const Trial& trial) {
  const auto* failed = trial.outcome ? std::get_if<Failed>(&*trial.outcome) : nullptr;
  if (failed == nullptr || is_interrupted(trial)) return "";
  const std::string& text = failed->last_lines;
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t before = text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin + 1);
}

std::string seconds_text(double seconds) {
  return seconds < 60.0 ? fmt::format("{:.0f} s", std::floor(seconds)) : duration_text(std::floor(seconds));
}

std::string closed_trial_text(const Session& session, const Trial& trial, const History& history) {
  const Objective& objective = session.objective;
  const std::optional<int>& repeated = trial.proposal.repeat_of;
  const std::string again =
      repeated ? fmt::format("#{} = #{} again:", trial.number, *repeated) : fmt::format("#{}", trial.number);
  std::string line = fmt::format("trial {}/{} {:<6}  {} {}  {}", closed_trials(history), session.budget.trials,
                                 status_text(*trial.outcome), again, short_text(session, trial.proposal.configuration),
                                 outcome_text(session, trial));
  const RunEffects effects(objective, history);
  if (const auto value = effects.value_of(trial)) line += "  " + gain_text_of(objective, *value, history);
  if (const auto best = best_value(objective, history)) line += "  best " + gain_text_of(objective, *best, history);
  line += short_emulated_note(session);
  const std::string trouble = last_line_of(trial);
  return trouble.empty() ? line : line + ": " + trouble;
}

std::string short_emulated_note(const Session& session) { return is_emulated(session) ? " (emulated network)" : ""; }

}  // namespace krigtune
