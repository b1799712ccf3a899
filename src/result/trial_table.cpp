#include "result/trial_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/statistics.h"
#include "core/units.h"
#include "deepspeed/result/loss_check.h"
#include "forecast/trial_utilization.h"
#include "report/labels.h"
#include "report/trial_lines.h"
#include "run/side_by_side.h"
#include "run/tuner.h"
#include "trial/measure_spec.h"

namespace krigtune::result {
namespace {

std::string bytes_text(std::optional<Bytes> bytes) { return bytes ? to_string(*bytes) : ""; }

report::Cell bytes_cell(std::optional<Bytes> bytes) {
  if (!bytes) return {};
  return {bytes_text(bytes), space::Value(bytes->count)};
}

report::Cell gain_cell(const std::optional<double>& gain) {
  return gain ? report::number_cell(*gain, report::gain_text(*gain)) : report::Cell{};
}

// Where and when trials ran only matters if there was more than one place.
bool has_places(const search::History& history) {
  return std::any_of(history.begin(), history.end(),
                     [](const journal::Trial& trial) { return trial.outcome && !trial.where.empty(); });
}

// Returns "10:00:03" of "2026-08-23T10:00:03.000000"; a time in another program's format is unchanged.
std::string clock_time(const std::string& started_at) {
  const std::size_t day_ends = started_at.find('T');
  return day_ends == std::string::npos ? started_at : started_at.substr(day_ends + 1, 8);
}

void add_place(const journal::Trial& trial, std::vector<report::Cell>& row) {
  row.push_back(report::text_cell(trial.where));
  row.push_back({clock_time(trial.started_at), space::Value(trial.started_at)});
  row.push_back(report::number_cell(trial.wall_s, duration_text(trial.wall_s)));
}

// The further objectives that have a column of their own; the peak of memory has one anyway.
std::vector<const session::Objective*> shown_others(const session::Session& session) {
  std::vector<const session::Objective*> shown;
  for (const session::Objective& other : session.others) {
    if (other.field != trial::kPeakMemory) shown.push_back(&other);
  }
  return shown;
}

std::vector<report::Column> columns_of(const report::RunView& run, bool with_places) {
  std::vector<report::Column> columns = {
      {"trial", "trial", true}, {"status", "status"}, {"reason", "reason"}, {"strategy", "strategy"}};
  for (const std::string& name : run.session.space.columns()) columns.push_back({name, name, true});
  const std::string title = !run.answer.emulated_network.empty() ? run.session.objective.metric + " (emulated network)"
                                                                 : run.session.objective.metric;
  columns.push_back({"value", title, true});
  columns.push_back({"value_sem", "± 95 %", true});
  columns.push_back({"gain", fmt::format("vs trial {}", run.answer.reference ? run.answer.reference->trial : 0), true});
  for (const session::Objective* other : shown_others(run.session))
    columns.push_back({"metric_" + other->field, other->metric, true});
  columns.push_back({"tokens_per_s_per_gpu", "tokens/s per GPU", true});
  columns.push_back({"mfu", "MFU", true});
  columns.push_back({"hfu", "HFU", true});
  columns.push_back({"peak_memory_bytes", "peak memory", true});
  columns.push_back({"best", "best"});
  columns.push_back({"raw_best", "raw best"});
  if (with_places) {
    columns.push_back({"where", "where"});
    columns.push_back({"started_at", "began"});
    columns.push_back({"wall_s", "took", true});
  }
  return columns;
}

report::Cell half_width_cell(const session::Session& session, const journal::Trial& trial) {
  const std::optional<double> sem = report::value_sem_of(trial);
  return sem ? report::number_cell(*sem, report::value_text(session, kNormal975 * *sem)) : report::Cell{};
}

void add_utilization(const session::Session& session, const journal::Trial& trial, std::vector<report::Cell>& row) {
  const trial::Measured* measured = report::measured_of(trial);
  const auto used =
      measured == nullptr ? std::nullopt : forecast::utilization_of(session, trial.proposal.configuration, *measured);
  if (!used) {
    row.insert(row.end(), 3, report::Cell{});
    return;
  }
  row.push_back(report::number_cell(used->tokens_per_s_per_gpu, report::rate_text(used->tokens_per_s_per_gpu)));
  row.push_back(report::number_cell(used->mfu, report::share_text(used->mfu)));
  row.push_back(report::number_cell(used->hfu, report::share_text(used->hfu)));
}

std::vector<report::Cell> row_of(const report::RunView& run, const answer::TrialGains& gains,
                                 const journal::Trial& trial, bool with_places) {
  const session::Objective& objective = run.session.objective;
  std::vector<report::Cell> row = {
      {fmt::format("{}", trial.number), space::Value(static_cast<std::int64_t>(trial.number))},
      report::text_cell(trial::status_text(*trial.outcome)),
      report::text_cell(report::reason_text(run.session, trial)),
      report::text_cell(trial.proposal.strategy)};
  for (const std::string& name : run.session.space.columns()) {
    const space::Value* value = trial.proposal.configuration.find(name);
    row.push_back(value == nullptr ? report::Cell{} : report::Cell{space::to_string(*value), *value});
  }
  row.push_back(report::number_cell(search::value_of(trial, objective), report::outcome_text(run.session, trial)));
  row.push_back(half_width_cell(run.session, trial));
  row.push_back(gain_cell(gains(trial)));
  for (const session::Objective* other : shown_others(run.session)) {
    const std::optional<double> number = search::value_of(trial, *other);
    row.push_back(number ? report::number_cell(*number, report::value_text(run.session, *other, *number))
                         : report::Cell{});
  }
  add_utilization(run.session, trial, row);
  row.push_back(bytes_cell(report::peak_memory_of(trial)));
  const bool best = run.answer.best && run.answer.best->trial == trial.number;
  const bool is_raw_best = run.answer.raw_best && run.answer.raw_best->trial == trial.number;
  const bool differs = is_raw_best && run.answer.best && !run.answer.raw_best->is_recommended;
  row.push_back({best ? "*" : differs ? "^" : "", space::Value(best)});
  row.push_back({is_raw_best ? "^" : "", space::Value(is_raw_best)});
  if (with_places) add_place(trial, row);
  return row;
}

// Describes the conventions, with the best trial's utilization by the other two of them.
std::string utilization_note(const report::RunView& run) {
  if (!run.answer.best) return "";
  const journal::Trial& best = run.history.at(static_cast<std::size_t>(run.answer.best->trial));
  const auto used =
      forecast::utilization_of(run.session, best.proposal.configuration, std::get<trial::Measured>(*best.outcome));
  if (!used) return "";
  return fmt::format("{}. Of trial {} without attention {}, HFU {}{}", report::mfu_convention(run.session), best.number,
                     report::share_text(used->mfu_without_attention), report::share_text(used->hfu),
                     used->too_good ? "; this is too good: see \"gpu\" and \"workload\"" : "");
}

}  // namespace

report::Table trial_table(const report::RunView& run) {
  const answer::Answer& answer = run.answer;
  const answer::TrialGains gains(run.session.objective, run.history, answer.reference);
  report::Table table;
  table.name = "trials";
  const bool with_places = has_places(run.history);
  table.columns = columns_of(run, with_places);
  for (const journal::Trial& trial : run.history) {
    if (trial.outcome) table.rows.push_back(row_of(run, gains, trial, with_places));
  }
  if (const auto check = deepspeed::loss_check(run)) {
    table.notes.push_back((deepspeed::is_warning(*check) ? "warning: " : "") + deepspeed::loss_check_sentence(*check));
  }
  if (!answer.emulated_network.empty())
    table.notes.push_back(answer.emulated_network + ": its collectives are held for the time it would take");
  if (const auto interference = run::interference_of(run.session.objective, run.history))
    table.notes.push_back(run::interference_sentence(*interference));
  if (!answer.reference_note.empty()) table.notes.push_back(answer.reference_note);
  for (const answer::Remark& remark : answer.remarks) table.notes.push_back(remark.text);
  if (const std::string raw = report::raw_best_sentence(run.session, answer); !raw.empty())
    table.notes.push_back(fmt::format("^ {}", raw));
  if (const std::string utilization = utilization_note(run); !utilization.empty()) table.notes.push_back(utilization);
  return table;
}

}  // namespace krigtune::result
