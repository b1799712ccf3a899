// Writes trials.csv, which has one row per closed trial. The runner `replay` can read it as a table.
#include "result/trials_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/csv.h"
#include "core/files.h"
#include "report/labels.h"
#include "result/writers.h"

namespace krigtune::result {
namespace {

const char* const kTrialsCsv = "trials.csv";

std::set<std::string> metric_names(const search::History& history) {
  std::set<std::string> names;
  for (const journal::Trial& trial : history) {
    const trial::Measured* result = report::measured_of(trial);
    if (result == nullptr) continue;
    for (const auto& [name, value] : result->metrics) names.insert(name);
  }
  return names;
}

std::vector<std::string> header(const std::vector<std::string>& columns, const std::set<std::string>& metrics) {
  std::vector<std::string> row = {"trial", "status", "reason", "strategy"};
  report::append(row, columns);
  report::append(row, {"value", "value_sem", "step_time_s", "peak_memory_bytes", "predicted_value",
                       "predicted_memory_bytes", "exposed_comm_s", "suggest_s", "wall_s", "started_at", "where"});
  for (const std::string& name : metrics) row.push_back("metric_" + name);
  return row;
}

// Returns the bound of a trial that was ended early.
std::optional<double> value_or_bound(const journal::Trial& trial, const session::Objective& objective) {
  if (const auto* bounded = std::get_if<trial::Bounded>(&*trial.outcome)) return bounded->at_best;
  return search::value_of(trial, objective);
}

std::vector<std::string> trial_row(const journal::Trial& trial, const session::Session& session,
                                   const std::vector<std::string>& columns, const std::set<std::string>& metrics) {
  const session::Objective& objective = session.objective;
  std::vector<std::string> row = {fmt::format("{}", trial.number), trial::status_text(*trial.outcome),
                                  report::reason_text(session, trial), trial.proposal.strategy};
  report::append(row, report::fields(trial.proposal.configuration, columns));
  report::append(row,
                 {report::field(value_or_bound(trial, objective)), report::field(report::value_sem_of(trial)),
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
  const std::set<std::string> metrics = metric_names(run.history);
  std::string text = csv_line(header(columns, metrics));
  for (const journal::Trial& trial : run.history) {
    if (trial.outcome) text += csv_line(trial_row(trial, run.session, columns, metrics));
  }
  return text;
}

void TrialsCsvFile::write(const report::RunView& run, bool whole) {
  const std::filesystem::path path = run.directory / kTrialsCsv;
  const std::vector<const journal::Trial*> closed = new_trials(run.history);
  if (whole || !is_as_left(path) || !has_columns_for(closed)) {
    write_atomically(path, *trials_csv(run));
    metrics_ = metric_names(run.history);
    ++rewritten_;
  } else if (!closed.empty()) {
    const std::vector<std::string> columns = run.session.space.columns();
    std::string rows;
    for (const journal::Trial* trial : closed) {
      rows += csv_line(trial_row(*trial, run.session, columns, metrics_));
    }
    bytes_.reset();  // if appending fails, the whole file is written next time
    append_durably(path, rows);
  }
  remember(path, run.history);
}

std::vector<const journal::Trial*> TrialsCsvFile::new_trials(const search::History& history) const {
  std::vector<const journal::Trial*> closed;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const bool is_written = i < is_written_.size() && is_written_[i];
    if (history[i].outcome && !is_written) closed.push_back(&history[i]);
  }
  return closed;
}

bool TrialsCsvFile::has_columns_for(const std::vector<const journal::Trial*>& trials) const {
  return std::all_of(trials.begin(), trials.end(), [this](const journal::Trial* trial) {
    const trial::Measured* result = report::measured_of(*trial);
    return result == nullptr || std::all_of(result->metrics.begin(), result->metrics.end(),
                                            [this](const auto& metric) { return metrics_.count(metric.first) > 0; });
  });
}

bool TrialsCsvFile::is_as_left(const std::filesystem::path& path) const {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return !error && !std::filesystem::is_symlink(path, error) && bytes_ && *bytes_ == bytes;
}

void TrialsCsvFile::remember(const std::filesystem::path& path, const search::History& history) {
  is_written_.resize(history.size());
  for (std::size_t i = 0; i < history.size(); ++i) is_written_[i] = history[i].outcome.has_value();
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  bytes_ = error ? std::nullopt : std::optional(bytes);
}

}  // namespace krigtune::result
