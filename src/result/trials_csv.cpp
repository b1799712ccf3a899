// trials.csv: one row per closed trial. Also a table that the runner `replay` reads.
#include <fmt/format.h>

#include <set>

#include "core/csv.h"
#include "report/labels.h"
#include "result/writers.h"

namespace krigtune {
namespace {

std::vector<std::string> metric_names(const History& history) {
  std::set<std::string> names;
  for (const Trial& trial : history) {
    if (!trial.outcome) continue;
    const auto* result = std::get_if<Measured>(&*trial.outcome);
    if (result == nullptr) continue;
    for (const auto& [name, value] : result->metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> header(const std::vector<std::string>& columns, const std::vector<std::string>& metrics) {
  std::vector<std::string> row = {"trial", "status", "reason", "strategy"};
  append(row, columns);
  append(row, {"value", "value_sem", "step_time_s", "peak_memory_bytes", "predicted_value", "predicted_memory_bytes",
               "exposed_comm_s", "suggest_s", "wall_s", "started_at"});
  for (const std::string& name : metrics) row.push_back("metric_" + name);
  return row;
}

// Of a trial that was ended early it is the bound.
std::optional<double> value_or_bound(const Trial& trial, const Objective& objective) {
  if (const auto* bounded = std::get_if<Bounded>(&*trial.outcome)) return bounded->at_best;
  return value_of(trial, objective);
}

std::optional<double> known_sem(const Trial& trial) {
  const auto* result = std::get_if<Measured>(&*trial.outcome);
  if (result == nullptr || !(result->value_sem > 0.0)) return std::nullopt;
  return result->value_sem;
}

std::vector<std::string> trial_row(const Trial& trial, const Objective& objective,
                                   const std::vector<std::string>& columns, const std::vector<std::string>& metrics) {
  std::vector<std::string> row = {fmt::format("{}", trial.number), status_text(*trial.outcome),
                                  reason_text(*trial.outcome), trial.proposal.strategy};
  append(row, fields(trial.proposal.configuration, columns));
  append(row, {field(value_or_bound(trial, objective)), field(known_sem(trial)), field(metric_of(trial, "step_time_s")),
               field(peak_memory_of(trial)), field(trial.proposal.predicted_value),
               field(trial.proposal.predicted_memory), field(metric_of(trial, "exposed_comm_s")),
               field(std::optional(trial.proposal.suggest_s)), field(std::optional(trial.wall_s)), trial.started_at});
  for (const std::string& name : metrics) row.push_back(field(metric_of(trial, name)));
  return row;
}

}  // namespace

std::optional<std::string> trials_csv(const RunView& run) {
  const std::vector<std::string> columns = run.session.space.columns();
  const std::vector<std::string> metrics = metric_names(run.history);
  std::string text = csv_line(header(columns, metrics));
  for (const Trial& trial : run.history) {
    if (trial.outcome) text += csv_line(trial_row(trial, run.session.objective, columns, metrics));
  }
  return text;
}

}  // namespace krigtune
