// First what to use, then why to believe it.
#include <fmt/format.h>

#include "core/files.h"
#include "core/text.h"
#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/change_text.h"
#include "report/labels.h"
#include "report/outlook_text.h"
#include "result/failure_story.h"
#include "result/trial_table.h"
#include "result/writers.h"
#include "runner/runner.h"

namespace krigtune::page {
namespace {

constexpr double kSecondsPerHour = 3600.0;
constexpr std::size_t kMostOfALog = 4000;

std::string times_text(double factor) { return fmt::format("{:.2f}", factor); }

std::string headline(const RunFacts& facts) {
  const search::Recommendation& best = *facts.best();
  if (best.trial == best.reference_trial) {
    return facts.session().baseline ? "What you have is the best that was found."
                                    : fmt::format("Trial {}, the first, is the best that was found.", best.trial);
  }
  const bool is_own = facts.reference()->proposal.strategy == search::kBaselineStrategy;
  const std::string than = is_own ? fmt::format("your configuration (trial {})", best.reference_trial)
                                  : fmt::format("trial {}", best.reference_trial);
  std::string text =
      report::is_speed(facts.objective())
          ? fmt::format("Trial {} trains {} times as fast as {}", best.trial, times_text(best.gain), than)
          : fmt::format("Trial {} is {} times better than {}", best.trial, times_text(best.gain), than);
  if (const std::optional<search::Gain>& together = best.changes.together) {
    text += fmt::format(": between {} and {} times at 95 %", times_text(together->lower_95),
                        times_text(together->upper_95));
  }
  return text + ".";
}

std::string change_table(const RunFacts& facts) {
  const search::Recommendation& best = *facts.best();
  if (best.changes.each.empty()) return "";
  const std::string before =
      facts.session().baseline ? "yours" : fmt::format("trial {}", facts.best()->reference_trial);
  HtmlTable changes{"What changes", {"parameter", before, "best", "this change alone"}, {}};
  const auto text = [](const std::optional<space::Value>& value) {
    return value ? element("code", user_text(space::to_string(*value)))
                 : std::string("<span class=\"soft\">none</span>");
  };
  for (const search::Change& change : best.changes.each) {
    changes.rows.push_back({element("code", user_text(change.parameter)), text(change.before), text(change.after),
                            escaped(report::change_sentence(facts.objective(), change))});
  }
  return table(changes);
}

double gpu_hours(const RunFacts& facts) {
  double seconds = 0.0;
  for (const journal::Trial* trial : facts.closed()) seconds += trial->wall_s;
  return seconds / kSecondsPerHour * static_cast<double>(facts.session().cluster.ranks());
}

// What the trials took, and how long a training must be for that to pay back.
std::string cost(const RunFacts& facts) {
  const report::RunView& run = facts.run();
  if (!runner::traits_of(run.session.runner).runs_programs) return "";
  const double spent = gpu_hours(facts);
  const std::int64_t ranks = run.session.cluster.ranks();
  std::string text = fmt::format("The trials took {:.2g} GPU-hours on {} rank{}.", spent, ranks, ranks == 1 ? "" : "s");
  const double gain = facts.best()->gain;
  if (report::is_speed(facts.objective()) && gain > 1.0) {
    text += fmt::format(" That is paid back by a training that would have taken {:.2g} GPU-hours as it was.",
                        spent / (1.0 - 1.0 / gain));
  }
  return text;
}

std::vector<std::string> reasons(const RunFacts& facts) {
  const search::Recommendation& best = *facts.best();
  const report::RunView& run = facts.run();
  std::vector<std::string> items;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) items.push_back(escaped(sentence(text)));
  };
  std::string measured = fmt::format("It measured {} in {} trial{}{}", facts.value_text(best.value), best.measurements,
                                     best.measurements == 1 ? "" : "s", report::emulated_note(run.session));
  if (best.upper_95 > best.lower_95) {
    measured += fmt::format("; expected of it are {}, and with 95 % {} to {}", facts.value_text(best.posterior_mean),
                            facts.value_text(best.lower_95), facts.value_text(best.upper_95));
  }
  add(measured);
  if (const auto next = result::runner_up(run); next && next->within_noise) {
    add(fmt::format("trial {} with {} is within noise of it", next->trial.number, facts.value_text(next->value)));
  }
  if (const auto outlook = report::last_outlook(run.history)) add(report::bound_text(facts.objective(), *outlook));
  add(cost(facts));
  if (const auto check = deepspeed::loss_check(run)) add(deepspeed::loss_check_sentence(*check));
  for (const std::string& line : deepspeed::batch_advice_lines(run)) add(line);
  add(result::reference_note(run.session, run.history));
  add(search::run_effect_sentence(facts.objective(), run.history));
  return items;
}

// Something to take home, with a button that copies it.
std::string copied(const char* id, const char* what, const std::optional<std::string>& text) {
  if (!text) return "";
  return fmt::format(
      "<details><summary>{0}</summary>\n<button type=\"button\" class=\"needs-script\" data-copy=\"{1}\">Copy {0}"
      "</button>\n<pre id=\"{1}\">{2}</pre></details>\n",
      what, id, escaped(*text));
}

std::string warning(const RunFacts& facts) {
  const auto check = deepspeed::loss_check(facts.run());
  if (!check || !deepspeed::is_warning(*check)) return "";
  return element("p", "<strong>Warning: " + escaped(deepspeed::loss_check_sentence(*check)) + "</strong>");
}

std::string without_success(const RunFacts& facts) {
  const result::FailureStory story = result::failure_story(facts.run());
  std::string html = element("p", {{"class", "headline"}}, escaped(fmt::format("No trial is ok: {}.", story.reasons)));
  if (!story.to_try.empty()) html += paragraph(escaped(fmt::format("To try: {}.", story.to_try)));
  if (!story.said.empty()) {
    html += paragraph(fmt::format("The first that failed, trial {}, said:", story.first.value_or(0)));
    html += element("pre", user_text(story.said, kMostOfALog));
  }
  return html;
}

}  // namespace

std::string answer(const RunFacts& facts) {
  if (facts.closed().empty()) return paragraph("No trial is closed yet.");
  if (facts.best() == nullptr) return element("div", {{"class", "answer"}}, without_success(facts));
  const report::RunView& run = facts.run();
  std::string html = element("p", {{"class", "headline"}}, escaped(headline(facts))) + "\n" + warning(facts);
  html += change_table(facts) + list(reasons(facts));
  html += copied("command", "the command", result::cmd_optimal(run));
  html += copied("ds-config", "ds_config.json", result::ds_config_beside_command(run));
  return element("div", {{"class", "answer"}}, html);
}

}  // namespace krigtune::page
