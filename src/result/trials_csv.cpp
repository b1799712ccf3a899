// trials.csv: one row per closed trial. Also a table that the runner `replay` reads.
#include <fmt/format.h>

#include <set>

#include "core/csv.h"
#include "report/labels.h"
#include "result/writers.h"

namespace krigtune::result {
namespace {

std::vector<std::string> metric_names(const search::History& history) {
  std::set<std::string> names;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome) continue;
    const auto* result = std::get_if<trial::Measured>(&*trial.outcome);
    if (result == nullptr) continue;
    for (const auto& [name, value] : result->metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> header(const std::vector<std::string>& columns, const std::vector<std::string>& metrics) {
  std::vector<std::string> row = {"trial", "status", "reason", "strategy"};
  report::append(row, columns);
  report::append(row, {"value", "value_sem", "step_time_s", "peak_memory_bytes", "predicted_value",
                       "predicted_memory_bytes", "exposed_comm_s", "suggest_s", "wall_s", "started_at", "where"});
  for (const std::string& name : metrics) row.push_back("metric_" + name);
  return row;
}

// Of a trial that was ended early it is the bound.
std::optional<double> value_or_bound(const journal::Trial& trial, const session::Objective& objective) {
  if (const auto* bounded = std::get_if<trial::Bounded>(&*trial.outcome)) return bounded->at_best;
  return search::value_of(trial, objective);
}

std::optional<double> known_sem(const journal::Trial& trial) {
  const auto* result = std::get_if<trial::Measured>(&*trial.outcome);
  if (result == nullptr || !(result->value_sem > 0.0)) return std::nullopt;
  return result->value_sem;
}

std::vector<std::string> trial_row(const journal::Trial& trial, const session::Objective& objective,
                                   const std::vector<std::string>& columns, const std::vector<std::string>& metrics) {
  std::vector<std::string> row = {fmt::format("{}", trial.number), trial::status_text(*trial.outcome),
                                  trial::reason_text(*trial.outcome), trial.proposal.strategy};
  report::append(row, report::fields(trial.proposal.configuration, columns));
  report::append(row,
                 {report::field(value_or_bound(trial, objective)), report::field(known_sem(trial)),
                  report::field(report::metric_of(trial, "step_time_s")), report::field(report::peak_memory_of(trial)),
                  report::field(trial.proposal.predicted_value), report::field(trial.proposal.predicted_memory),
                  report::field(report::metric_of(trial, "exposed_comm_s")),
                  report::field(std::optional(trial.proposal.suggest_s)), report::field(std::optional(trial.wall_s)),
                  trial.started_at, trial.where});
  for (const std::string& name : metrics) row.push_back(report::field(report::metric_of(trial, name)));
  return row;
}

}  // namespace

std::optional<std::string> trials_csv(const report::RunView& run) {
  const std::vector<std::string> columns = run.session.space.columns();
  const std::vector<std::string> metrics = metric_names(run.history);
  std::string text = csv_line(header(columns, metrics));
  for (const journal::Trial& trial : run.history) {
    if (trial.outcome) text += csv_line(trial_row(trial, run.session.objective, columns, metrics));
  }
  return text;
}

}  // namespace krigtune::result
