#include "tune_summary.h"

#include <fmt/format.h>

#include <ostream>

#include "document.h"
#include "end_text.h"
#include "failure_summary.h"
#include "krigtune/core/text.h"
#include "krigtune/report/batch_advice.h"
#include "krigtune/report/change_text.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/loss_check.h"
#include "krigtune/report/result_files.h"
#include "krigtune/report/trial_table.h"
#include "krigtune/tuner/run_effects.h"

namespace krigtune {
namespace {

// Closed trials that count, by status.
std::vector<std::pair<std::string, int>> counts_by_status(const History& history) {
  std::vector<std::pair<std::string, int>> closed = {{"ok", 0}, {"oom", 0}, {"failed", 0}, {"bounded", 0}};
  for (const Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    for (auto& [status, count] : closed) count += status == status_text(*trial.outcome) ? 1 : 0;
  }
  return closed;
}

std::vector<std::string> files_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const ResultFile& file : result_files()) {
    if (std::filesystem::exists(directory / file.name)) names.emplace_back(file.name);
  }
  return names;
}

std::string trials_by_status(const History& history) {
  std::vector<std::string> parts;
  int closed = 0;
  for (const auto& [status, count] : counts_by_status(history)) {
    closed += count;
    if (count > 0) parts.push_back(fmt::format("{} {}", count, status));
  }
  return closed == 0 ? "0" : fmt::format("{}: {}", closed, join(parts, ", "));
}

std::string paragraph(const char* title, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("{:<11}{}\n", text.empty() ? title : "", line);
  return text;
}

std::string best_lines(const RunView& run) {
  const Recommendation& best = *run.best;
  const Session& session = run.session;
  const std::string note = emulated_note(session);
  const std::optional<LossCheck> losses = loss_check(run);
  std::string text;
  if (losses && is_warning(*losses)) text = fmt::format("warning    {}\n", loss_check_sentence(*losses));
  text += fmt::format("best       trial {}: {}\n", best.trial, best.configuration.text());
  text += fmt::format("           {}, {} trial {} ({}){}\n", named_value_text(session, best.value),
                      gain_text(best.gain), best.reference_trial, value_text(session, best.reference_value), note);
  text += fmt::format("           expected {}, 95 % interval {} to {}{}\n", value_text(session, best.posterior_mean),
                      value_text(session, best.lower_95), value_text(session, best.upper_95), note);
  if (const auto next = runner_up(run); next && next->within_noise) {
    text += fmt::format("runner-up  trial {}: {}\n           {}, within noise of the best{}\n", next->trial.number,
                        next->trial.proposal.configuration.text(), value_text(session, next->value), note);
  }
  if (is<DeepSpeedSpec>(session.runner)) {
    text += paragraph("changes", change_lines(session.objective, best.changes));
  }
  if (losses && !is_warning(*losses)) text += fmt::format("losses     {}\n", loss_check_sentence(*losses));
  text += paragraph("batch", batch_advice_lines(run));
  if (const std::string reference = reference_note(session, run.history); !reference.empty()) {
    text += "           " + reference + "\n";
  }
  const std::string machine = run_effect_sentence(session.objective, run.history);
  return machine.empty() ? text : text + "machine    " + machine + "\n";
}

void print_summary_text(const Context& context, const RunView& run, const RunResult& result,
                        const Conclusion& conclusion) {
  std::ostream& out = context.console.out;
  if (run.best) out << best_lines(run);
  out << "trials     " << trials_by_status(run.history) << "\nended      " << end_text(run.session, result) << '\n';
  const std::string left = left_text(run.session, result);
  if (!is_stopped_early(result.reason) && !left.empty()) out << "left       " << left << '\n';
  if (is_stopped_early(result.reason)) out << "go on      " << conclusion.command_to_spend_the_budget << '\n';
  const std::vector<std::string> files = files_in(run.directory);
  if (!files.empty()) out << "files      " << run.directory.string() << ": " << join(files, " ") << '\n';
}

Json best_document(const RunView& run) {
  const Recommendation& best = *run.best;
  Json json = {{"trial", best.trial},
               {"configuration", to_json(best.configuration)},
               {"value", json_number(best.value)},
               {"measurements", best.measurements},
               {"value_sem", best.value_sem > 0.0 ? json_number(best.value_sem) : Json(nullptr)},
               {"posterior_mean", json_number(best.posterior_mean)},
               {"lower_95", json_number(best.lower_95)},
               {"upper_95", json_number(best.upper_95)},
               {"reference_trial", best.reference_trial},
               {"reference_value", json_number(best.reference_value)},
               {"gain", json_number(best.gain)}};
  if (const auto next = runner_up(run)) {
    json["runner_up"] = {{"trial", next->trial.number},
                         {"configuration", to_json(next->trial.proposal.configuration)},
                         {"value", json_number(next->value)},
                         {"within_noise", next->within_noise}};
  }
  json["changes"] = changes_json(best.changes);
  json["loss_check"] = loss_check_json(loss_check(run));
  json["batch_advice"] = batch_advice_json(run);
  return json;
}

// Seconds that each trial's suggestion took, in the order of the trials.
Json suggestion_times(const History& history) {
  Json times = Json::array();
  for (const Trial& trial : history) times.push_back(trial.proposal.suggest_s);
  return times;
}

void print_summary_json(const Context& context, const RunView& run, const RunResult& result,
                        const Conclusion& conclusion) {
  Json json = new_document("tune");
  json["session"] = run.name;
  json["strategy"] = to_string(run.options.strategy);
  json["seed"] = run.options.seed;
  json["metric"] = run.session.objective.metric;
  json["emulated_network"] = emulated_json(run.session);
  json["directory"] = run.directory.string();
  json["ended"] = to_string(result.reason);
  json["left_out"] = result.reason == EndReason::kThrough ? Json(result.detail) : Json(nullptr);
  json["end_reason"] = word_of(result.reason);
  json["outlook"] = outlook_json(result.outlook);
  json["one_more_trial"] = worth_json(result.worth);
  json["trials"] = Json::object();
  for (const auto& [status, count] : counts_by_status(run.history)) json["trials"][status] = count;
  json["trials_now"] = result.trials_now;
  json["suggest_s"] = suggestion_times(run.history);
  const std::string machine = run_effect_sentence(run.session.objective, run.history);
  if (!machine.empty()) json["machine"] = machine;
  json["best"] = run.best ? best_document(run) : Json(nullptr);
  json["files"] = files_in(run.directory);
  if (result.reason == EndReason::kInterrupted) json["go_on"] = conclusion.command_to_go_on;
  if (is_stopped_early(result.reason)) json["go_on"] = conclusion.command_to_spend_the_budget;
  print(context, json);
}

int exit_code(const Context& context, const RunView& run, const RunResult& result, const Conclusion& conclusion) {
  if (result.reason == EndReason::kInterrupted) {
    context.log.progress("saved; to go on: " + conclusion.command_to_go_on);
    return ExitCode::kInterrupted;
  }
  if (result.reason == EndReason::kEnvironment) {
    context.log.error("the environment lacks something: " + result.detail);
    return ExitCode::kEnvironment;
  }
  if (result.reason == EndReason::kNothingFits) {
    context.log.error(
        fmt::format("no configuration fits into {}; see krigtune plan, raise the memory limit, or widen the space",
                    run.session.usable_per_rank ? to_string(*run.session.usable_per_rank) : "memory"));
    return ExitCode::kNoResult;
  }
  if (!run.best) {
    explain_failure(run, context.log);
    return ExitCode::kNoResult;
  }
  if (conclusion.slowest_gain && run.best->gain < *conclusion.slowest_gain) {
    context.log.error(fmt::format("the best is {} trial {}, less than the {} asked for with --fail-if-slower-than",
                                  gain_text(run.best->gain), run.best->reference_trial,
                                  gain_text(*conclusion.slowest_gain)));
    return ExitCode::kNoResult;
  }
  return ExitCode::kDone;
}

}  // namespace

int conclude(const Context& context, const RunView& start, const std::optional<Recommendation>& best,
             const RunResult& result, const Conclusion& conclusion) {
  const RunView run{start.session, result.history, start.name, start.options, start.directory, start.bench, best};
  if (context.arguments.flag("json")) {
    print_summary_json(context, run, result, conclusion);
  } else {
    print_summary_text(context, run, result, conclusion);
  }
  return exit_code(context, run, result, conclusion);
}

}  // namespace krigtune
