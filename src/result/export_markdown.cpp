// A summary for a pull request or a ticket: what to train with, the differences from the present settings, and the
// evidence.
#include <fmt/format.h>

#include "core/text.h"
#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "report/change_text.h"
#include "report/changes_page.h"
#include "report/front_text.h"
#include "report/job_text.h"
#include "report/labels.h"
#include "report/trial_classes.h"
#include "result/export.h"
#include "result/writers.h"
#include "search/model/job_words.h"

namespace krigtune::result {
namespace {

// Returns code for a table cell: on one line, with escaped bars, between more backticks than it contains in a row.
std::string code(const std::string& text) {
  std::string fence = "`";
  while (text.find(fence) != std::string::npos) fence += '`';
  std::string shown;
  for (const char c : text) {
    if (c == '|') shown += '\\';
    shown += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  const char* blank = fence.size() > 1 || text.empty() ? " " : "";
  return fmt::format("{}{}{}{}{}", fence, blank, shown, blank, fence);
}

std::string code_or_nothing(const std::optional<space::Value>& value) {
  return value ? code(space::to_string(*value)) : "";
}

std::string own_words(const report::RunView& run) {
  return run.answer.reference->is_own ? "your own configuration"
                                      : fmt::format("trial {}", run.answer.best->reference_trial);
}

std::string headline(const report::RunView& run) {
  const search::Recommendation& best = *run.answer.best;
  const session::Objective& objective = run.session.objective;
  if (!is_recommended(run)) {
    return fmt::format("Configuration of trial {} of {}, as it was proposed.\n", best.trial, code(run.name));
  }
  std::string text = fmt::format("**{} {}**, {} ({}) as measured", report::gain_text(best.gain), own_words(run),
                                 report::named_value_text(run.session, best.value),
                                 report::value_text(run.session, best.reference_value));
  if (best.gain_by_model) {
    text += fmt::format("; by the model of all trials {}", report::gain_sentence(objective, *best.gain_by_model));
  }
  text += fmt::format(". Trial {} of {}{}.\n", best.trial, code(run.name), report::emulated_note(run.session));
  if (run.answer.has_interval()) {
    text += fmt::format("Expected {}, 95 % interval {}.\n", report::value_text(run.session, best.posterior_mean),
                        report::interval_text(run.session, best.lower_95, best.upper_95));
  }
  return text;
}

std::string settings_table(const report::RunView& run) {
  const search::Recommendation& best = *run.answer.best;
  if (best.changes.each.empty()) {
    std::string text = "| setting | value |\n|---|---|\n";
    for (const auto& [name, value] : best.configuration) {
      text += fmt::format("| {} | {} |\n", code(name), code(space::to_string(value)));
    }
    return is_recommended(run) && run.answer.is_reference
               ? fmt::format("Nothing is to be changed: {} is the best that was found.\n\n{}", own_words(run), text)
               : text;
  }
  std::string text = "| setting | before | after | gain of this change alone |\n|---|---|---|---|\n";
  for (const search::Change& change : best.changes.each) {
    text += fmt::format("| {} | {} | {} | {} |\n", code(change.parameter), code_or_nothing(change.before),
                        code_or_nothing(change.after), report::change_sentence(run.session.objective, change));
  }
  return text;
}

std::string trials_line(const report::RunView& run) {
  const answer::TrialCounts& trials = run.answer.trials;
  std::string text = fmt::format("{} by the strategy {}: {}", counted(trials.closed, "trial"),
                                 search::to_string(run.options.strategy), report::status_text_of(trials));
  if (run.answer.gpu_hours)
    text += fmt::format("; {:.2g} {} spent in them", *run.answer.gpu_hours, run.session.cluster.hours_unit());
  return text + ".\n";
}

std::string notes(const report::RunView& run) {
  std::string text;
  const char* const about_trials = runner::traits_of(run.session.runner).words.about_trials;
  if (*about_trials != '\0') text += fmt::format("{}\n", about_trials);
  if (const std::optional<deepspeed::LossCheck> check = deepspeed::loss_check(run)) {
    text += fmt::format("{}{}\n", deepspeed::is_warning(*check) ? "**Warning:** " : "",
                        deepspeed::loss_check_sentence(*check));
  }
  for (const answer::Remark& remark : run.answer.remarks) text += remark.text + "\n";
  for (const std::string& line : deepspeed::batch_advice_lines(run)) text += line + "\n";
  return text.empty() ? "" : "\n" + text;
}

// The members of the front, of which the recommended configuration is one.
std::string front_part(const report::RunView& run) {
  if (run.answer.front.empty() || !is_recommended(run)) return "";
  std::string text = fmt::format("\nIt is one of {}:\n\n", report::front_sentence(run.session, run.answer.front));
  for (const std::string& line : report::front_lines(run.session, run.answer.front)) text += "- " + line + "\n";
  return text;
}

// What the trials say about a job that the session does not describe, or describes otherwise.
std::string job_part(const report::RunView& run) {
  const std::string sentence = report::job_sentence_of(*run.answer.best);
  if (sentence.empty()) return "";
  std::string text = fmt::format("\nThe job: {}.\n\n| the job | | probability |\n|---|---|---|\n", sentence);
  for (const search::JobRow& row : search::job_rows(*run.answer.best->job)) {
    text += fmt::format("| {} | {} | {} |\n", row.question, row.answer, search::job_probability_text(row.probability));
  }
  return text;
}

// The fence is longer than any sequence of backticks in the text.
std::string fenced(const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{}sh\n{}{}\n", fence, text, fence);
}

std::string reproduction(const report::RunView& run) {
  std::string text;
  if (const std::optional<std::string> command = cmd_optimal(run)) text += "\nTo run it:\n\n" + fenced(*command);
  return text + fmt::format(
                    "\nThe trials are in the run directory {} (`krigtune results` shows them). The same session with "
                    "`--strategy {} --seed {}` proposes the same trials for the same results.\n",
                    code(run.directory.filename().string()), search::to_string(run.options.strategy), run.options.seed);
}

}  // namespace

Export export_markdown(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  const std::string text =
      fmt::format("## What to train with\n\n{}\n{}\n{}{}{}{}{}", headline(run), settings_table(run), trials_line(run),
                  notes(run), front_part(run), job_part(run), reproduction(run));
  return {{{"summary.md", text, "paste it into a pull request"}}};
}

}  // namespace krigtune::result
