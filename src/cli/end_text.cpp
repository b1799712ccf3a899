#include "end_text.h"

#include <fmt/format.h>

#include "krigtune/report/labels.h"

namespace krigtune {
namespace {

// Beyond, a bound tells no more than that little is known.
constexpr double kTellingBound = 1.0;

std::string percent(double fraction) { return fmt::format("{:.2g} %", 100.0 * fraction); }

const char* better(const Objective& objective) { return is_speed(objective) ? "faster" : "better"; }

std::string worth_text(const Session& session, const TrialWorth& worth) {
  return fmt::format("one more trial costs {:.2g} GPU-hours and is expected to save {:.2g} of {:g}",
                     worth.cost_gpu_hours, worth.saving_gpu_hours, session.budget.run_gpu_hours.value_or(0.0));
}

}  // namespace

bool is_stopped_early(EndReason reason) {
  return reason == EndReason::kSure || reason == EndReason::kLittleToGain || reason == EndReason::kNotWorthIt;
}

std::string bound_text(const Objective& objective, const Outlook& outlook) {
  const std::string sure = fmt::format("{:g} % sure", 100.0 * outlook.confidence);
  if (outlook.regret_bound > kTellingBound) {
    return fmt::format("too little is known to say what is left ({})", sure);
  }
  if (outlook.regret_bound == 0.0) return fmt::format("nothing left is likely to be {} ({})", better(objective), sure);
  return fmt::format("nothing left is likely to be more than {} {} ({})", percent(outlook.regret_bound),
                     better(objective), sure);
}

const char* word_of(EndReason reason) {
  switch (reason) {
    case EndReason::kTrials:
      return "trials";
    case EndReason::kHours:
      return "hours";
    case EndReason::kPatience:
      return "patience";
    case EndReason::kSure:
      return "sure";
    case EndReason::kLittleToGain:
      return "little_to_gain";
    case EndReason::kNotWorthIt:
      return "not_worth_it";
    case EndReason::kExhausted:
      return "exhausted";
    case EndReason::kThrough:
      return "through";
    case EndReason::kWaits:
      return "waits";
    case EndReason::kNothingFits:
      return "nothing_fits";
    case EndReason::kInterrupted:
      return "interrupted";
    case EndReason::kEnvironment:
      return "environment";
  }
  return "unknown";
}

std::string end_text(const Session& session, const RunResult& result) {
  if (result.reason == EndReason::kThrough && !result.detail.empty()) {
    return fmt::format("{}: {}", to_string(result.reason), result.detail);
  }
  if (!is_stopped_early(result.reason)) return to_string(result.reason);
  const std::string left = left_text(session, result);
  if (result.reason == EndReason::kSure) return "stopped: " + left;
  if (result.reason == EndReason::kNotWorthIt) return "stopped: not worth it any more: " + left;
  return fmt::format("stopped: no further trial is expected to gain {} or more; {}", percent(session.budget.least_gain),
                     left);
}

std::string left_text(const Session& session, const RunResult& result) {
  if (!result.outlook) return "";
  std::string text = bound_text(session.objective, *result.outlook);
  if (result.worth) text += "; " + worth_text(session, *result.worth);
  return text;
}

Json outlook_json(const std::optional<Outlook>& outlook) {
  if (!outlook) return nullptr;
  return {{"expected_gain", json_number(outlook->expected_gain)},
          {"regret_bound", json_number(outlook->regret_bound)},
          {"confidence", json_number(outlook->confidence)}};
}

Json worth_json(const std::optional<TrialWorth>& worth) {
  if (!worth) return nullptr;
  return {{"cost_gpu_hours", json_number(worth->cost_gpu_hours)},
          {"expected_saving_gpu_hours", json_number(worth->saving_gpu_hours)}};
}

std::optional<Outlook> last_outlook(const History& history) {
  for (auto trial = history.rbegin(); trial != history.rend(); ++trial) {
    if (trial->proposal.outlook) return trial->proposal.outlook;
  }
  return std::nullopt;
}

}  // namespace krigtune
