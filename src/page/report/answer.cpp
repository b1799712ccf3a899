// First what to use, then the evidence.
#include <fmt/format.h>

#include "core/files.h"
#include "core/text.h"
#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/change_text.h"
#include "report/front_text.h"
#include "report/labels.h"
#include "report/outlook_text.h"
#include "report/trial_lines.h"
#include "result/export.h"
#include "result/failure_story.h"
#include "result/writers.h"
#include "runner/runner.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostOfALog = 4000;

std::string times_text(double factor) { return fmt::format("{:.2f}", factor); }

std::string headline(const RunFacts& facts) {
  const search::Recommendation& best = *facts.best();
  const bool is_own = facts.answer().reference->is_own;
  if (facts.answer().is_reference) {
    return is_own ? "What you have is the best that was found."
                  : fmt::format("Trial {}, the first, is the best that was found.", best.reference_trial);
  }
  const std::string than =
      is_own ? fmt::format("yours (trial {})", best.reference_trial) : fmt::format("trial {}", best.reference_trial);
  std::string text = fmt::format("The recommended configuration (trial {}) {} {} times {} {}", best.trial,
                                 report::is_speed(facts.objective()) ? "trains" : "is", times_text(best.gain),
                                 report::is_speed(facts.objective()) ? "as fast as" : "better than", than);
  if (const std::string doubt = report::doubt_about_gain(best); !doubt.empty()) return text + ". But " + doubt + ".";
  if (const std::optional<search::Gain>& gain = best.gain_by_model)
    text += fmt::format("; 95 % interval {} to {}", times_text(gain->lower_95), times_text(gain->upper_95));
  return text + ".";
}

// Lets names break after their underscores if there is no room for them, as on a phone.
std::string breakable(std::string name) {
  for (std::size_t at = name.find('_'); at != std::string::npos; at = name.find('_', at + 1)) {
    name.insert(at + 1, "<wbr>");
  }
  return name;
}

std::string change_table(const RunFacts& facts) {
  const search::Recommendation& best = *facts.best();
  if (best.changes.each.empty()) return "";
  const std::string before =
      facts.session().baseline ? "yours" : fmt::format("trial {}", facts.best()->reference_trial);
  HtmlTable changes{
      "What changes. Alone: the gain lost if only this value is set back", {"parameter", before, "best", "alone"}, {}};
  const auto text = [](const std::optional<space::Value>& value) {
    return value ? element("code", user_text(space::to_string(*value)))
                 : std::string("<span class=\"soft\">none</span>");
  };
  for (const search::Change& change : best.changes.each) {
    changes.rows.push_back({element("code", breakable(user_text(change.parameter))), text(change.before),
                            text(change.after), escaped(report::change_sentence(facts.objective(), change))});
  }
  return table(changes);
}

// Returns "gpt2-1.5b, 1.56 billion parameters", or the model's sizes.
std::string model_text(const workload::Workload& workload) {
  constexpr double kMillion = 1e6, kBillion = 1e9;
  const workload::ModelSpec& model = workload.model;
  std::string name = fmt::format("a model of {} layers, {} wide,", model.layers, model.hidden);
  for (const std::string& preset : workload::model_preset_names()) {
    workload::ModelSpec other = workload::model_preset(preset);
    other.seq_len = model.seq_len;
    other.attention = model.attention;
    other.dropout = model.dropout;
    if (other == model) name = preset + ",";
  }
  const auto parameters = static_cast<double>(workload::parameter_count(model));
  const bool is_large = parameters >= kBillion;
  return fmt::format("{} {:.3g} {} parameters, sequences of {}, {}", name,
                     parameters / (is_large ? kBillion : kMillion), is_large ? "billion" : "million", model.seq_len,
                     workload::precision_word(workload));
}

// Returns which model and machines the figures are about; "" if the session states neither.
std::string subject(const RunFacts& facts) {
  const session::Session& session = facts.session();
  const workload::ClusterSpec& cluster = session.cluster;
  std::string text = session.workload ? "for " + model_text(*session.workload) : "";
  if (!session.workload && cluster.is_local() && !runner::traits_of(session.runner).runs_programs) return "";
  const std::string device = !cluster.is_local() ? cluster.gpu : cluster.measured ? "CPU" : "this machine";
  text += fmt::format("{}on {} of {}", text.empty() ? "" : ", ", counted(cluster.ranks(), "rank"), device);
  if (cluster.measured && !cluster.measured->key.processor.empty())
    text += fmt::format(" ({}, {} cores)", cluster.measured->key.processor, cluster.measured->key.cores);
  if (cluster.nodes > 1) text += fmt::format(", {} nodes", cluster.nodes);
  return text;
}

// Says how much the trials cost, and how long a training must be for them to pay off.
std::string cost(const RunFacts& facts) {
  if (!facts.answer().gpu_hours) return "";
  const double spent = *facts.answer().gpu_hours;
  const std::int64_t ranks = facts.session().cluster.ranks();
  const char* const unit = facts.session().cluster.hours_unit();
  std::string text = fmt::format("The trials took {:.2g} {} on {}.", spent, unit, counted(ranks, "rank"));
  const double gain = facts.best()->gain;
  if (report::is_speed(facts.objective()) && gain > 1.0) {
    text += fmt::format(" They pay for themselves in any training that would have taken more than {:.2g} {}.",
                        spent / (1.0 - 1.0 / gain), unit);
  }
  return text;
}

// Says what all trials of the recommended configuration measured, and what the reference trial did.
std::string measured(const RunFacts& facts) {
  const search::Recommendation& best = *facts.best();
  std::string text =
      fmt::format("It measured {}{}", facts.value_text(best.value), report::mean_text(best.measurements));
  if (!facts.answer().is_reference)
    text += fmt::format("; trial {} measured {}{}", best.reference_trial, facts.value_text(best.reference_value),
                        report::mean_text(best.reference_measurements));
  if (facts.answer().has_interval()) {
    text += fmt::format(". The model of all trials expects {}, 95 % interval {}", facts.value_text(best.posterior_mean),
                        report::interval_text(facts.session(), best.lower_95, best.upper_95));
  }
  return text;
}

std::string emulated(const RunFacts& facts) {
  if (facts.answer().emulated_network.empty()) return "";
  return fmt::format(
      "These are figures of an {}: collectives are held for the time that it would take. They rank configurations; "
      "they are not the speed of another machine",
      facts.answer().emulated_network);
}

std::string peak_memory(const RunFacts& facts) {
  const auto peak_of = [&](int number) -> std::optional<Bytes> {
    const journal::Trial* trial = search::find_trial(facts.run().history, number);
    return trial == nullptr ? std::nullopt : report::peak_memory_of(*trial);
  };
  const std::optional<Bytes> peak = peak_of(facts.best()->trial);
  if (!peak) return "";
  std::string text = fmt::format("Peak memory of a rank is {}", to_string(*peak));
  if (const auto usable = facts.session().usable_per_rank) text += fmt::format(" of {}", to_string(*usable));
  const std::optional<Bytes> before = peak_of(facts.best()->reference_trial);
  if (before && !facts.answer().is_reference)
    text += fmt::format("; trial {} took {}", facts.best()->reference_trial, to_string(*before));
  return text;
}

std::string predicted_bottleneck(const RunFacts& facts) {
  if (!facts.forecaster().knows_time()) return "";
  const std::optional<cost::StepCost> cost = facts.forecaster()(facts.best()->configuration).cost;
  if (!cost) return "";
  return fmt::format("The predicted bottleneck is {}; krigtune diagnose {} says what would help",
                     cost::to_string(cost->bottleneck()), shell_line({facts.run().directory.string()}));
}

std::string kept_batch(const RunFacts& facts) {
  const auto& batch = facts.session().space.facts().train_batch_size;
  return batch ? fmt::format("Every trial trains {} a step, so what the model learns stays the same",
                             counted(*batch, "sequence"))
               : "";
}

// Why it is recommended although others may be faster.
std::string pick(const RunFacts& facts) {
  const std::string text = report::pick_text(facts.session(), facts.answer());
  return text.empty() ? "" : fmt::format("It is the pick of the front: {}", text);
}

std::vector<std::string> reasons(const RunFacts& facts) {
  const report::RunView& run = facts.run();
  std::vector<std::string> items;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) items.push_back(escaped(sentence(text)));
  };
  add(subject(facts));
  add(emulated(facts));
  add(pick(facts));
  add(measured(facts));
  add(report::run_noise_sentence(run.session));
  if (const auto& next = facts.answer().runner_up; next && next->within_noise)
    add(fmt::format("Trial {} with {} is within noise of it", next->trial, facts.value_text(next->value)));
  add(report::raw_best_sentence(run.session, facts.answer()));
  add(report::last_bound_text(facts.answer()));
  add(kept_batch(facts));
  add(peak_memory(facts));
  add(predicted_bottleneck(facts));
  add(cost(facts));
  if (const auto check = deepspeed::loss_check(run)) add(deepspeed::loss_check_sentence(*check));
  for (const std::string& line : deepspeed::batch_advice_lines(run)) add(line);
  add(facts.answer().reference_note);
  for (const answer::Remark& remark : facts.answer().remarks) add(remark.text);
  return items;
}

// Returns a text with a button that copies it. `note` is text.
std::string copied(const char* id, const std::string& what, const std::optional<std::string>& text,
                   const std::string& note = "") {
  if (!text) return "";
  return fmt::format(
      "<details><summary>{0}</summary>\n{3}<button type=\"button\" class=\"needs-script\" data-copy=\"{1}\">Copy "
      "it</button>\n<pre id=\"{1}\">{2}</pre></details>\n",
      what, id, escaped(*text), note.empty() ? "" : paragraph(escaped(note)));
}

// Says for how many ranks the file is, and which settings it cannot express.
std::string note_on_ds_config(const RunFacts& facts) {
  std::string text = fmt::format("It is for {}: train_batch_size is their product with micro-batch and accumulation.",
                                 counted(facts.session().cluster.ranks(), "rank"));
  for (const result::Omission& one : result::export_deepspeed(facts.run(), facts.run().directory).omissions) {
    text += fmt::format(" It cannot say {} = {}: {}.", one.setting, space::to_string(one.value), one.why);
  }
  return text;
}

std::string take_home(const RunFacts& facts) {
  const report::RunView& run = facts.run();
  const bool trains_our_step = runner::traits_of(run.session.runner).trains_our_step;
  const std::optional<std::string> ds_config = result::ds_config_beside_command(run);
  return copied("ds-config", "Its ds_config.json", ds_config, ds_config ? note_on_ds_config(facts) : "") +
         copied("command", trains_our_step ? "The command that measures it again" : "The command that trains with it",
                result::cmd_optimal(run));
}

std::string warning(const RunFacts& facts) {
  const auto check = deepspeed::loss_check(facts.run());
  if (!check || !deepspeed::is_warning(*check)) return "";
  return element("p", "<strong>Warning: " + escaped(deepspeed::loss_check_sentence(*check)) + "</strong>");
}

std::string without_success(const RunFacts& facts) {
  const result::FailureStory story = result::failure_story(facts.run());
  std::string html =
      element("p", {{"class", "headline"}}, escaped(fmt::format("No trial succeeded: {}.", story.reasons)));
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
  std::string html = element("p", {{"class", "headline"}}, escaped(headline(facts))) + "\n" + warning(facts);
  html += change_table(facts) + list(reasons(facts));
  html += take_home(facts);
  return element("div", {{"class", "answer"}}, html);
}

}  // namespace krigtune::page
