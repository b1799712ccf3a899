#include "programs/krigtune/tune_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>

#include "core/columns.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/report.h"
#include "programs/krigtune/session_state.h"
#include "report/change_text.h"
#include "report/front_text.h"
#include "report/job_text.h"
#include "report/labels.h"
#include "report/memory_advice.h"
#include "report/outlook_text.h"
#include "report/trial_classes.h"
#include "report/trial_lines.h"
#include "result/failure_story.h"
#include "result/result_files.h"
#include "runner/begun_file.h"
#include "space/well_known.h"

namespace krigtune::cli {
namespace {

std::string worth_text(const session::Session& session, const run::TrialWorth& worth) {
  return fmt::format("one more trial costs {:.2g} {} and is expected to save {:.2g} of {:g}", worth.cost_gpu_hours,
                     session.cluster.hours_unit(), worth.saving_gpu_hours, session.budget.run_gpu_hours.value_or(0.0));
}

}  // namespace

std::string end_text(const session::Session& session, const run::RunResult& result) {
  if (result.reason == run::EndReason::kNoProposal && !result.detail.empty()) {
    return fmt::format("{}: {}", run::words_of(result.reason).sentence, result.detail);
  }
  if (!run::words_of(result.reason).is_early) return run::words_of(result.reason).sentence;
  const std::string left = left_text(session, result);
  if (result.reason == run::EndReason::kSure) return "stopped: " + left;
  if (result.reason == run::EndReason::kNotWorthIt) return "stopped: one more trial is not worth its cost: " + left;
  const char* gain = session.others.empty() ? "gain {} or more" : "add {} or more to the hypervolume of the front";
  return fmt::format("stopped: no further trial is expected to {}; {}",
                     fmt::format(fmt::runtime(gain), report::percent_text(session.budget.least_gain)), left);
}

std::string left_text(const session::Session& session, const run::RunResult& result) {
  if (!result.outlook) return "";
  std::string text = report::bound_text(*result.outlook);
  if (result.worth) text += "; " + worth_text(session, *result.worth);
  return text;
}

Json outlook_json(const std::optional<journal::Outlook>& outlook) {
  if (!outlook) return nullptr;
  return {{"expected_gain", json_number(outlook->expected_gain)},
          {"regret_bound", json_number(outlook->regret_bound)},
          {"confidence", json_number(outlook->confidence)}};
}

Json worth_json(const std::optional<run::TrialWorth>& worth) {
  if (!worth) return nullptr;
  return {{"cost_gpu_hours", json_number(worth->cost_gpu_hours)},
          {"expected_saving_gpu_hours", json_number(worth->saving_gpu_hours)}};
}

void explain_failure(const report::RunView& run, Log& log) {
  const auto ran = std::ranges::find_if(run.history, [](const journal::Trial& trial) {
    return trial.outcome && std::holds_alternative<trial::Measured>(*trial.outcome);
  });
  if (ran != run.history.end() && !run.session.limits.empty()) {
    log.error("no configuration kept to the limits of the session; trial " +
              fmt::format("{}: {}", ran->number, report::reason_text(run.session, *ran)));
    log.progress("to try: more trials, or other values in \"space\" or \"limits\" of the session");
    return;
  }
  const result::FailureStory story = result::failure_story(run);
  log.error("no trial succeeded: " + story.reasons);
  if (!story.said.empty()) {
    const std::string file = story.log.empty() ? "" : fmt::format(" ({})", story.log.string());
    log.progress(
        fmt::format("the first that failed, trial {}{}, said:\n{}", story.first.value_or(0), file, story.said));
  }
  if (!story.to_try.empty()) log.progress("to try: " + story.to_try);
}

namespace {

std::vector<std::string> files_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const result::ResultFile& file : result::result_files()) {
    if (std::filesystem::exists(directory / file.name)) names.emplace_back(file.name);
  }
  if (std::filesystem::exists(directory / kReportFile)) names.emplace_back(kReportFile);
  return names;
}

std::string trials_text(const answer::TrialCounts& trials) {
  return trials.closed == 0 ? "0" : fmt::format("{}: {}", trials.closed, report::status_text_of(trials));
}

std::string paragraph(const char* title, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("{:<11}{}\n", text.empty() ? title : "", line);
  return text;
}

std::string best_lines(const report::RunView& run) {
  const answer::Answer& answer = run.answer;
  const search::Recommendation& best = *answer.best;
  const session::Session& session = run.session;
  const std::string note = report::emulated_note(session);
  const std::optional<deepspeed::LossCheck> losses = deepspeed::loss_check(run);
  std::string text;
  if (losses && deepspeed::is_warning(*losses))
    text = fmt::format("warning    {}\n", deepspeed::loss_check_sentence(*losses));
  text += fmt::format("best       trial {}: {}\n", best.trial, best.configuration.text());
  text += fmt::format("           {}{}, {} trial {} ({}{}){}\n", report::named_value_text(session, best.value),
                      report::mean_text(best.measurements), report::gain_text(best.gain), best.reference_trial,
                      report::value_text(session, best.reference_value), report::mean_text(best.reference_measurements),
                      note);
  text += fmt::format("           expected {}, 95 % interval {}{}\n", report::value_text(session, best.posterior_mean),
                      report::interval_text(session, best.lower_95, best.upper_95), note);
  if (const std::string gain = report::expected_gain_text(best); !gain.empty())
    text += "           expected gain, model of all trials: " + gain + note + "\n";
  if (const std::string doubt = report::doubt_about_gain(best); !doubt.empty()) text += "           " + doubt + "\n";
  if (const std::string noise = report::run_noise_sentence(session); !noise.empty())
    text += "           " + noise + "\n";
  if (const auto& next = answer.runner_up; next && next->within_noise) {
    text += fmt::format("runner-up  trial {}: {}\n           {}, within noise of the best{}\n", next->trial,
                        next->configuration.text(), report::value_text(session, next->value), note);
  }
  if (const std::string raw = report::raw_best_sentence(session, answer); !raw.empty())
    text += "           " + raw + "\n";
  if (runner::edited_file(session.runner) != nullptr) {
    text += paragraph("changes", report::change_lines(session.objective, best.changes));
  }
  if (losses && !deepspeed::is_warning(*losses))
    text += fmt::format("losses     {}\n", deepspeed::loss_check_sentence(*losses));
  text += paragraph("batch", deepspeed::batch_advice_lines(run));
  if (!answer.reference_note.empty()) text += "           " + answer.reference_note + "\n";
  for (const answer::Remark& remark : answer.remarks) text += paragraph(remark.name, {remark.text});
  return text;
}

// Breaks lines at the terminal's width, and aligns continuation lines with the text above. Commands are never broken,
// so that they can be copied.
std::string for_terminal(const std::string& text, int columns) {
  constexpr int kIndent = 11;
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    result += (line.starts_with("continue ") ? line : wrapped_lines(line, columns, kIndent)) + "\n";
  return result;
}

void print_summary_text(const Context& context, const report::RunView& run, const run::RunResult& result,
                        const Conclusion& conclusion) {
  std::ostringstream out;
  if (run.answer.best) out << best_lines(run);
  if (run.answer.best && !conclusion.doubt.empty()) out << "           " << conclusion.doubt << '\n';
  out << paragraph("front", report::front_lines(run.session, run.answer.front));
  if (const std::string pick = report::pick_text(run.session, run.answer); !pick.empty())
    out << paragraph("pick", {pick});
  const std::string job = run.answer.best ? report::job_sentence_of(*run.answer.best) : "";
  if (!job.empty()) out << "job        " << job << '\n';
  out << "trials     " << trials_text(run.answer.trials) << "\nended      " << end_text(run.session, result) << '\n';
  const std::string left = left_text(run.session, result);
  const bool is_early = run::words_of(result.reason).is_early;
  if (!is_early && !left.empty()) out << "outlook    " << left << '\n';
  if (is_early) out << "continue   " << conclusion.command_to_spend_the_budget << '\n';
  const std::vector<std::string> files = files_in(run.directory);
  if (!files.empty()) out << "files      " << run.directory.string() << ": " << join(files, " ") << '\n';
  const bool fits = context.console.out_is_terminal;
  context.console.out << (fits ? for_terminal(out.str(), context.log.width()) : out.str());
}

Json best_document(const report::RunView& run) {
  const search::Recommendation& best = *run.answer.best;
  Json json = {{"trial", best.trial},
               {"configuration", space::to_json(best.configuration)},
               {"value", json_number(best.value)},
               {"measurements", best.measurements},
               {"value_sem", best.value_sem > 0.0 ? json_number(best.value_sem) : Json(nullptr)},
               {"posterior_mean", json_number(best.posterior_mean)},
               {"lower_95", json_number(best.lower_95)},
               {"upper_95", json_number(best.upper_95)},
               {"reference_trial", best.reference_trial},
               {"reference_value", json_number(best.reference_value)},
               {"reference_measurements", best.reference_measurements},
               {"gain", json_number(best.gain)}};
  if (const auto& next = run.answer.runner_up) {
    json["runner_up"] = {{"trial", next->trial},
                         {"configuration", space::to_json(next->configuration)},
                         {"value", json_number(next->value)},
                         {"within_noise", next->within_noise}};
  }
  json["changes"] = report::changes_json(best.changes);
  json["loss_check"] = deepspeed::loss_check_json(deepspeed::loss_check(run));
  json["batch_advice"] = deepspeed::batch_advice_json(run);
  json["job"] = report::job_json(best.job);
  return json;
}

// Returns the seconds that each trial's proposal took, in the order of the trials.
Json suggestion_times(const search::History& history) {
  Json times = Json::array();
  for (const journal::Trial& trial : history) times.push_back(trial.proposal.suggest_s);
  return times;
}

void print_summary_json(const Context& context, const report::RunView& run, const run::RunResult& result,
                        const Conclusion& conclusion) {
  Json json = new_document("tune");
  json["session"] = run.name;
  add_search(json, run.session, run.options);
  json["directory"] = run.directory.string();
  json["ended"] = run::words_of(result.reason).sentence;
  json["left_out"] = result.reason == run::EndReason::kNoProposal ? Json(result.detail) : Json(nullptr);
  json["end_reason"] = run::words_of(result.reason).word;
  json["outlook"] = outlook_json(result.outlook);
  json["one_more_trial"] = worth_json(result.worth);
  json["trials"] = Json::object();
  for (const auto& [status, count] : run.answer.trials.by_status) json["trials"][status] = count;
  json["trials_now"] = result.trials_now;
  json["suggest_s"] = suggestion_times(run.history);
  for (const answer::Remark& remark : run.answer.remarks) json[remark.name] = remark.text;
  json["front"] = report::front_json(run.session, run.answer.front);
  if (!run.session.others.empty()) json.update(report::pick_json(run.session, run.answer));
  json["best"] = run.answer.best ? best_document(run) : Json(nullptr);
  json["files"] = files_in(run.directory);
  if (result.reason == run::EndReason::kInterrupted) json["go_on"] = conclusion.command_to_go_on;
  if (run::words_of(result.reason).is_early) json["go_on"] = conclusion.command_to_spend_the_budget;
  print(context, json);
}

int exit_code(const Context& context, const report::RunView& run, const run::RunResult& result,
              const Conclusion& conclusion) {
  if (result.reason == run::EndReason::kInterrupted) {
    context.log.progress("saved; to continue: " + conclusion.command_to_go_on);
    return ExitCode::kInterrupted;
  }
  if (result.reason == run::EndReason::kEnvironment) {
    context.log.error("the environment lacks something: " + result.detail);
    return ExitCode::kEnvironment;
  }
  if (result.reason == run::EndReason::kNothingFits) {
    context.log.error(fmt::format("no configuration fits into {}; see krigtune plan, and {}",
                                  run.session.usable_per_rank ? to_string(*run.session.usable_per_rank) : "memory",
                                  report::memory_advice(run.session)));
    return ExitCode::kNoResult;
  }
  if (!run.answer.best) {
    explain_failure(run, context.log);
    if (result.reason == run::EndReason::kFailsAlike) {
      context.log.error("the last trials failed alike: " + result.detail);
      context.log.progress("fix the job or the command, and run it again; to continue anyway: " +
                           conclusion.command_to_keep_going);
    }
    return ExitCode::kNoResult;
  }
  if (conclusion.slowest_gain && run.answer.best->gain < *conclusion.slowest_gain) {
    context.log.error(fmt::format("the best is {} trial {}, less than the {} of --fail-if-slower-than",
                                  report::gain_text(run.answer.best->gain), run.answer.best->reference_trial,
                                  report::gain_text(*conclusion.slowest_gain)));
    return ExitCode::kNoResult;
  }
  return ExitCode::kDone;
}

}  // namespace

int conclude(const Context& context, const report::RunView& start, const std::optional<search::Recommendation>& best,
             const run::RunResult& result, const Conclusion& conclusion) {
  const report::RunView run = start.with(result.history, best);
  if (context.arguments.flag("json")) {
    print_summary_json(context, run, result, conclusion);
  } else {
    print_summary_text(context, run, result, conclusion);
  }
  return exit_code(context, run, result, conclusion);
}

}  // namespace krigtune::cli
