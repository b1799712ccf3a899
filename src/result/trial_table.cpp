#include "result/trial_table.h"

#include <fmt/format.h>

#include "deepspeed/result/loss_check.h"
#include "report/labels.h"
#include "run/tuner.h"
#include "search/trials/run_effects.h"

namespace krigtune {
namespace {

std::string bytes_text(std::optional<Bytes> bytes) { return bytes ? to_string(*bytes) : ""; }

Cell bytes_cell(std::optional<Bytes> bytes) {
  if (!bytes) return {};
  return {bytes_text(bytes), Value(bytes->count)};
}

Cell gain_cell(const Objective& objective, const RunEffects& effects, const Trial& trial,
               const std::optional<Trial>& reference) {
  const std::optional<double> value = effects.value_of(trial);
  const std::optional<double> base = reference ? effects.value_of(*reference) : std::nullopt;
  if (!value || !base) return {};
  const double gain = gain_over(objective, *value, *base);
  return number_cell(gain, gain_text(gain));
}

std::vector<Column> columns_of(const RunView& run, const std::optional<Trial>& reference) {
  std::vector<Column> columns = {
      {"trial", "trial", true}, {"status", "status"}, {"reason", "reason"}, {"strategy", "strategy"}};
  for (const std::string& name : run.session.space.columns()) columns.push_back({name, name, true});
  const std::string title =
      is_emulated(run.session) ? run.session.objective.metric + " (emulated network)" : run.session.objective.metric;
  columns.push_back({"value", title, true});
  columns.push_back({"gain", fmt::format("vs trial {}", reference ? reference->number : 0), true});
  columns.push_back({"peak_memory_bytes", "peak memory", true});
  columns.push_back({"best", "best"});
  return columns;
}

std::vector<Cell> row_of(const RunView& run, const RunEffects& effects, const Trial& trial,
                         const std::optional<Trial>& reference) {
  const Objective& objective = run.session.objective;
  std::vector<Cell> row = {{fmt::format("{}", trial.number), Value(static_cast<std::int64_t>(trial.number))},
                           text_cell(status_text(*trial.outcome)),
                           text_cell(reason_text(*trial.outcome)),
                           text_cell(trial.proposal.strategy)};
  for (const std::string& name : run.session.space.columns()) {
    const Value* value = trial.proposal.configuration.find(name);
    row.push_back(value == nullptr ? Cell{} : Cell{to_string(*value), *value});
  }
  row.push_back(number_cell(value_of(trial, objective), outcome_text(run.session, trial)));
  row.push_back(gain_cell(objective, effects, trial, reference));
  row.push_back(bytes_cell(peak_memory_of(trial)));
  const bool best = run.best && run.best->trial == trial.number;
  row.push_back({best ? "*" : "", Value(best)});
  return row;
}

}  // namespace

Table trial_table(const RunView& run) {
  const std::optional<Trial> reference = reference_trial(run.session.objective, run.history);
  const RunEffects effects(run.session.objective, run.history);
  Table table;
  table.name = "trials";
  table.columns = columns_of(run, reference);
  for (const Trial& trial : run.history) {
    if (trial.outcome) table.rows.push_back(row_of(run, effects, trial, reference));
  }
  if (const auto check = loss_check(run)) {
    table.notes.push_back((is_warning(*check) ? "warning: " : "") + loss_check_sentence(*check));
  }
  if (is_emulated(run.session)) {
    table.notes.push_back(emulated_label(run.session) + ": its collectives are held for the time it would take");
  }
  const std::string note = reference_note(run.session, run.history);
  if (!note.empty()) table.notes.push_back(note);
  const std::string machine = run_effect_sentence(run.session.objective, run.history);
  if (!machine.empty()) table.notes.push_back(machine);
  return table;
}

std::string reference_note(const Session& session, const History& history) {
  const std::optional<Trial> reference = reference_trial(session.objective, history);
  if (!reference || reference->proposal.strategy == kBaselineStrategy) return "";
  return fmt::format("gains are relative to trial {}, the first that is ok: {}", reference->number,
                     session.baseline ? "the baseline is not" : "the session has no baseline");
}

std::optional<RunnerUp> runner_up(const RunView& run) {
  if (!run.best) return std::nullopt;
  std::optional<RunnerUp> next;
  for (const MeasuredMean& mean : measured_means(run.session.objective, run.history)) {
    const Trial& trial = run.history[mean.best];
    if (trial.proposal.configuration == run.best->configuration) continue;
    if (!next || run.session.objective.better(mean.value, next->value)) next = RunnerUp{trial, mean.value, false};
  }
  if (next) next->within_noise = next->value >= run.best->lower_95 && next->value <= run.best->upper_95;
  // A better single measurement that the model does not believe differs by noise too.
  if (next && run.session.objective.better(next->value, run.best->value)) next->within_noise = true;
  return next;
}

}  // namespace krigtune
