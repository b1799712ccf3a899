#include "report/trial_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/columns.h"
#include "core/statistics.h"
#include "core/text.h"
#include "report/labels.h"
#include "search/model/limit_models.h"
#include "space/well_known.h"

namespace krigtune::report {
namespace {

// The columns of a line, separated by two blanks. A field that is wider than its column moves the rest to the right,
// and less room remains for the differences.
constexpr int kNumberColumns = 5;
constexpr int kValueColumns = 21;
constexpr int kGainColumns = 6;
constexpr int kMemoryColumns = 9;
constexpr int kFewestColumns = 40;
constexpr const char* kBetween = "  ";

bool follows(const session::Session& session, const std::string& name) {
  return name == space::kAccumulation && session.space.facts().accumulation_follows();
}

// Returns "activation_checkp...=full", because the value matters more than the name.
std::string shortened(const std::string& item, int columns) {
  constexpr int kShortestName = 6;
  const std::size_t sign = item.find('=');
  if (sign == std::string::npos) return clipped(item, columns);
  const std::string value = item.substr(sign);
  const int room = columns - columns_of(value);
  return room < kShortestName ? clipped(item, columns)
                              : fmt::format("{}{}", clipped(item.substr(0, sign), room), value);
}

}  // namespace

std::string fitted(const std::vector<std::string>& items, int columns) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t after = items.size() - i - 1;
    const std::string rest = after == 0 ? "" : fmt::format(" +{}", after);
    const std::string item = fmt::format("{}{}", text.empty() ? "" : " ", items[i]);
    const int room = columns - columns_of(text) - columns_of(rest);
    if (columns_of(item) <= room) {
      text += item;
      continue;
    }
    if (text.empty()) return clipped(shortened(items[i], std::max(room, 0)) + rest, std::max(columns, 0));
    // The room for the number of omitted items was reserved for at least as many.
    return fmt::format("{} +{}", text, after + 1);
  }
  return text;
}

namespace {

// Real numbers with four digits: trials.csv and the best have all of them.
std::string line_value_text(const space::Value& value) {
  constexpr std::size_t kLong = 8;
  std::string text = short_value_text(value);
  if (!std::holds_alternative<double>(value) || text.size() <= kLong) return text;
  return fmt::format("{:.4g}", space::as_number(value));
}

}  // namespace

std::vector<std::string> differences(const session::Session& session, const space::Configuration& configuration,
                                     const space::Configuration& from) {
  std::vector<std::string> items;
  for (const auto& [name, value] : configuration) {
    const space::Value* other = from.find(name);
    if (follows(session, name) || (other != nullptr && space::same_value(value, *other))) continue;
    items.push_back(visible(fmt::format("{}={}", name, line_value_text(value))));
  }
  if (!items.empty()) return items;
  for (const auto& [name, value] : from) {
    if (!configuration.has(name)) items.push_back(fmt::format("no {}", visible(name)));
  }
  return items;
}

std::string measured_text(const session::Session& session, const journal::Trial& trial) {
  const std::optional<double> value = search::value_of(trial, session.objective);
  if (!value) return outcome_text(session, trial);
  const std::optional<double> sem = value_sem_of(trial);
  return sem ? value_with_half_width(session, *value, kNormal975 * *sem) : value_text(session, *value);
}

std::vector<std::string> TrialLines::header() const {
  const char* const label = session_.cluster.emulated_network ? " (emulated)" : "";
  const std::string metric = visible(session_.objective.metric);
  const bool fits = columns_of(metric) + columns_of(label) <= kValueColumns;
  const std::string value = fmt::format("{}{}", fits ? metric : "value", label);
  return {clipped(
      fmt::format("{:>{}}{}{}{}{:>{}}{}{}changes from the best (*)", "trial", kNumberColumns, kBetween,
                  padded(value, kValueColumns, true), kBetween, "gain", kGainColumns, kBetween, memory_cell("memory")),
      columns_)};
}

// Replayed tables have no memory, so its room is used for the differences.
std::string TrialLines::memory_cell(const std::string& text) const {
  if (!runner::traits_of(session_.runner).has_our_units) return "";
  return fmt::format("{:>{}}{}", text, kMemoryColumns, kBetween);
}

std::vector<std::string> TrialLines::what_differs(const journal::Trial& trial, const search::History& history,
                                                  const std::optional<search::Recommendation>& best,
                                                  const std::optional<search::Recommendation>& before) const {
  const space::Configuration& own = trial.proposal.configuration;
  if (const std::string broken = search::broken_limits(session_, trial); !broken.empty())
    return {"beyond its limit: " + visible(broken)};
  if (trial.proposal.repeat_of) return {fmt::format("trial {} again", *trial.proposal.repeat_of)};
  if (trial.proposal.strategy == search::kBaselineStrategy) return {"baseline"};
  const bool is_best = best && best->configuration == own;
  const std::optional<search::Recommendation>& other = is_best ? before : best;
  if (other && other->configuration != own) return differences(session_, own, other->configuration);
  if (is_best && before) return {"the best"};
  // No trial has succeeded yet, or this one is the first.
  if (session_.baseline && *session_.baseline != own) return differences(session_, own, *session_.baseline);
  if (history.front().proposal.configuration == own) return differences(session_, own, {});
  return differences(session_, own, history.front().proposal.configuration);
}

std::string TrialLines::line(const journal::Trial& trial, const search::History& history,
                             const std::optional<search::Recommendation>& best,
                             const std::optional<search::Recommendation>& before) const {
  const session::Objective& objective = session_.objective;
  const answer::TrialGains gains(objective, history);
  const std::optional<double> value = gains.value_of(trial);
  const std::optional<double> gain = gains(trial);
  const bool is_best = best && best->trial == trial.number;
  const bool is_above = value && best && search::broken_limits(session_, trial).empty() &&
                        best->configuration != trial.proposal.configuration && objective.better(*value, best->value);
  const std::optional<Bytes> memory = peak_memory_of(trial);
  const char mark_of_raw = is_above ? '^' : ' ';
  const int columns = std::max(columns_, kFewestColumns);
  std::string text =
      fmt::format("{:>{}}{} {}{}{:>{}}{}{}", trial.number, kNumberColumns, is_best ? '*' : mark_of_raw,
                  padded(visible(measured_text(session_, trial)), kValueColumns, true), kBetween,
                  gain ? gain_text(*gain) : "", kGainColumns, kBetween, memory_cell(memory ? to_string(*memory) : ""));
  text += fitted(what_differs(trial, history, best, before), columns - columns_of(text));
  text.erase(text.find_last_not_of(' ') + 1);
  return clipped(text, columns_);
}

std::string raw_best_sentence(const session::Session& session, const answer::Answer& answer) {
  const std::optional<answer::RawBest>& raw = answer.raw_best;
  if (!raw || !answer.best || raw->is_recommended) return "";
  return fmt::format(
      "trial {} measured the {} value, {}{}; by all measurements together the model expects trial {} to be better",
      raw->trial, session.objective.maximize ? "largest" : "smallest", value_text(session, raw->value),
      emulated_note(session), answer.best->trial);
}

}  // namespace krigtune::report
