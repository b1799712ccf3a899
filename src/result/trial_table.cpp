#include "result/trial_table.h"

#include <fmt/format.h>

#include "deepspeed/result/loss_check.h"
#include "report/labels.h"
#include "run/tuner.h"
#include "search/trials/run_effects.h"

namespace krigtune::result {
namespace {

std::string bytes_text(std::optional<Bytes> bytes) { return bytes ? to_string(*bytes) : ""; }

report::Cell bytes_cell(std::optional<Bytes> bytes) {
  if (!bytes) return {};
  return {bytes_text(bytes), space::Value(bytes->count)};
}

report::Cell gain_cell(const session::Objective& objective, const search::RunEffects& effects,
                       const journal::Trial& trial, const std::optional<journal::Trial>& reference) {
  const std::optional<double> value = effects.value_of(trial);
  const std::optional<double> base = reference ? effects.value_of(*reference) : std::nullopt;
  if (!value || !base) return {};
  const double gain = search::gain_over(objective, *value, *base);
  return report::number_cell(gain, report::gain_text(gain));
}

std::vector<report::Column> columns_of(const report::RunView& run, const std::optional<journal::Trial>& reference) {
  std::vector<report::Column> columns = {
      {"trial", "trial", true}, {"status", "status"}, {"reason", "reason"}, {"strategy", "strategy"}};
  for (const std::string& name : run.session.space.columns()) columns.push_back({name, name, true});
  const std::string title = report::is_emulated(run.session) ? run.session.objective.metric + " (emulated network)"
                                                             : run.session.objective.metric;
  columns.push_back({"value", title, true});
  columns.push_back({"gain", fmt::format("vs trial {}", reference ? reference->number : 0), true});
  columns.push_back({"peak_memory_bytes", "peak memory", true});
  columns.push_back({"best", "best"});
  return columns;
}

std::vector<report::Cell> row_of(const report::RunView& run, const search::RunEffects& effects,
                                 const journal::Trial& trial, const std::optional<journal::Trial>& reference) {
  const session::Objective& objective = run.session.objective;
  std::vector<report::Cell> row = {
      {fmt::format("{}", trial.number), space::Value(static_cast<std::int64_t>(trial.number))},
      report::text_cell(trial::status_text(*trial.outcome)),
      report::text_cell(trial::reason_text(*trial.outcome)),
      report::text_cell(trial.proposal.strategy)};
  for (const std::string& name : run.session.space.columns()) {
    const space::Value* value = trial.proposal.configuration.find(name);
    row.push_back(value == nullptr ? report::Cell{} : report::Cell{space::to_string(*value), *value});
  }
  row.push_back(report::number_cell(search::value_of(trial, objective), report::outcome_text(run.session, trial)));
  row.push_back(gain_cell(objective, effects, trial, reference));
  row.push_back(bytes_cell(report::peak_memory_of(trial)));
  const bool best = run.best && run.best->trial == trial.number;
  row.push_back({best ? "*" : "", space::Value(best)});
  return row;
}

}  // namespace

report::Table trial_table(const report::RunView& run) {
  const std::optional<journal::Trial> reference = search::reference_trial(run.session.objective, run.history);
  const search::RunEffects effects(run.session.objective, run.history);
  report::Table table;
  table.name = "trials";
  table.columns = columns_of(run, reference);
  for (const journal::Trial& trial : run.history) {
    if (trial.outcome) table.rows.push_back(row_of(run, effects, trial, reference));
  }
  if (const auto check = deepspeed::loss_check(run)) {
    table.notes.push_back((deepspeed::is_warning(*check) ? "warning: " : "") + deepspeed::loss_check_sentence(*check));
  }
  if (report::is_emulated(run.session)) {
    table.notes.push_back(report::emulated_label(run.session) +
                          ": its collectives are held for the time it would take");
  }
  const std::string note = reference_note(run.session, run.history);
  if (!note.empty()) table.notes.push_back(note);
  const std::string machine = search::run_effect_sentence(run.session.objective, run.history);
  if (!machine.empty()) table.notes.push_back(machine);
  return table;
}

std::string reference_note(const session::Session& session, const search::History& history) {
  const std::optional<journal::Trial> reference = search::reference_trial(session.objective, history);
  if (!reference || reference->proposal.strategy == search::kBaselineStrategy) return "";
  return fmt::format("gains are relative to trial {}, the first that is ok: {}", reference->number,
                     session.baseline ? "the baseline is not" : "the session has no baseline");
}

std::optional<RunnerUp> runner_up(const report::RunView& run) {
  if (!run.best) return std::nullopt;
  std::optional<RunnerUp> next;
  for (const search::MeasuredMean& mean : search::measured_means(run.session.objective, run.history)) {
    const journal::Trial& trial = run.history[mean.best];
    if (trial.proposal.configuration == run.best->configuration) continue;
    if (!next || run.session.objective.better(mean.value, next->value)) next = RunnerUp{trial, mean.value, false};
  }
  if (next) next->within_noise = next->value >= run.best->lower_95 && next->value <= run.best->upper_95;
  // A better single measurement that the model does not believe differs by noise too.
  if (next && run.session.objective.better(next->value, run.best->value)) next->within_noise = true;
  return next;
}

}  // namespace krigtune::result
