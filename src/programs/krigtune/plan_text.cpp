// The sections of `krigtune plan` that describe the job, its parameters, the space and the memory.
#include "programs/krigtune/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "cost/framework.h"
#include "cost/memory/memory_model.h"
#include "fleet/sureness.h"
#include "programs/krigtune/plan_tables.h"
#include "report/front_text.h"
#include "report/labels.h"
#include "report/table.h"
#include "search/model/job_words.h"
#include "session/memory_filter.h"
#include "space/well_known.h"

namespace krigtune::cli {
namespace {

std::string range_text(const space::Parameter& parameter) {
  const char* const scale = parameter.scale == space::Scale::kLog ? ", log scale" : "";
  return fmt::format("any from {} to {}{}", number_text(parameter.range->min), number_text(parameter.range->max),
                     scale);
}

// Returns as many values as fit into a line that begins at column `from`.
std::string values_text(const space::Parameter& parameter, std::size_t from) {
  if (parameter.continuous()) return range_text(parameter);
  constexpr std::size_t kWidth = 100;
  constexpr std::size_t kMostInWidth = kWidth / 2;  // a letter, a comma and a blank for each
  std::vector<std::string> values;
  const bool is_long = parameter.values.size() > kMostInWidth;
  for (const space::Value& value : parameter.values) {
    if (values.size() < kMostInWidth) values.push_back(space::to_string(value));
  }
  if (is_long) values.push_back(space::to_string(parameter.values.back()));
  std::vector<std::string> shown = values;
  for (std::size_t kept = values.size() - 1; join(shown, ", ").size() + from > kWidth && kept > 1; --kept) {
    shown.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept - 1));
    shown.insert(shown.end(), {"...", values.back()});
  }
  return join(shown, ", ");
}

std::string values_counted(const space::Parameter& parameter) {
  if (parameter.continuous()) return "  real values";
  return fmt::format("{:>6} {}", parameter.values.size(), parameter.values.size() == 1 ? "value " : "values");
}

void print_counts(const PlanText& text) {
  const forecast::VerdictCounts& counts = text.study.counts;
  const std::string usable = to_string(*text.session.usable_per_rank);
  const auto line = [&](std::int64_t count, const std::string& what) {
    text.out << fmt::format("  {:>13}  {}\n", count, what);
  };
  if (counts.too_large > 0) line(-counts.too_large, fmt::format("too large for {} a rank: never tried", usable));
  if (counts.uncertain > 0) {
    line(counts.uncertain, counts.expected_to_run < 0.5
                               ? "uncertain: probably none of them fits"
                               : fmt::format("uncertain: about {:.0f} of them fit", counts.expected_to_run));
  }
  if (counts.unknown > 0) line(counts.unknown, "whose memory is not modelled");
  line(counts.fit, fmt::format("fit into {} a rank", usable));
}

void print_shares(const PlanText& text) {
  const forecast::VerdictCounts& counts = text.study.counts;
  const auto share = [&](std::int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(counts.all());
  };
  text.out << fmt::format("  of {} drawn at random {:.1f} % fit into {} a rank", counts.all(), share(counts.fit),
                          to_string(*text.session.usable_per_rank));
  if (counts.uncertain > 0) text.out << fmt::format(", {:.1f} % are uncertain", share(counts.uncertain));
  text.out << fmt::format(", {:.1f} % are too large\n", share(counts.too_large));
}

}  // namespace

// Prints the names that the job's framework has for the session's parameters: "zero_stage is sharding_strategy
// (FULL_SHARD is 3, SHARD_GRAD_OP 2, NO_SHARD 0)". DeepSpeed's keys are omitted: they are in docs/parameters.md, and
// krigtune writes them itself.
void print_frameworks_names(const PlanText& text) {
  if (!text.session.workload || text.session.workload->framework == workload::Framework::kDeepSpeed) return;
  const std::string framework = cost::traits_of(text.session.workload->framework).name;
  std::vector<std::string> names;
  for (const space::Parameter& parameter : text.session.space.parameters()) {
    const space::WellKnownParameter* known = space::find_well_known(parameter.name);
    if (known == nullptr) continue;
    for (const space::OtherName& other : known->other_names) {
      const std::string_view where = other.where;
      if ((", " + lower_case(where)).find(", " + framework) == std::string::npos) continue;  // `where` may list several
      const std::size_t values = where.find(": ");
      names.push_back(
          fmt::format("{} is {}{}", parameter.name, other.name,
                      values == std::string_view::npos ? "" : fmt::format(" ({})", where.substr(values + 2))));
    }
  }
  if (!names.empty()) text.out << wrapped(fmt::format("  in {}'s words: {}", framework, join(names, "; ")), 4);
}

void print_parameters(const PlanText& text) {
  std::size_t width = 0;
  for (const space::Parameter& parameter : text.session.space.parameters())
    width = std::max(width, parameter.name.size());
  text.out << "Parameters\n";
  for (const space::Parameter& parameter : text.session.space.parameters()) {
    const std::string begin = fmt::format("  {:<{}}  {}  ", parameter.name, width, values_counted(parameter));
    text.out << begin << values_text(parameter, begin.size())
             << (parameter.when ? ", when " + parameter.when->text() : "") << '\n';
  }
  const space::Configuration& fixed = text.session.space.facts().fixed;
  if (!fixed.empty()) text.out << wrapped("  fixed: " + fixed.text(), 4);
  text.out << wrapped("  baseline (trial 0): " + (text.session.baseline ? text.session.baseline->text() : "none"), 4);
  print_frameworks_names(text);
}

namespace {

void print_list(std::ostream& out, const std::vector<std::string>& list) {
  for (const std::string& text : list) out << wrapped("  " + text, 4);
}

void print_usual_settings(std::ostream& out, const session::Session& session) {
  const std::vector<session::Assumption>& assumptions = session.assumptions;
  const bool has_caveats = session.workload && !session.workload->caveats.assumed.empty();
  if (assumptions.empty() && !has_caveats) return;
  out << "\nAssumed, because the session does not say\n";
  if (has_caveats) print_list(out, session.workload->caveats.assumed);
  if (assumptions.empty()) return;
  std::size_t width = 0;
  for (const session::Assumption& one : assumptions)
    width = std::max(width, one.name.size() + space::to_string(one.value).size() + 3);
  for (const session::Assumption& one : assumptions) {
    const std::string line =
        fmt::format("  {:<{}}  {}", one.name + " = " + space::to_string(one.value), width, one.where);
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  if (assumptions.front().name == "attention" || assumptions.front().name == "model") return;
  out << wrapped(fmt::format("  Jobs of {} usually do. If yours does not, write \"fixed\": {{\"{}\": {}}}.",
                             cost::traits_of(session.workload->framework).name, assumptions.front().name,
                             assumptions.front().name == space::kSequenceParallel ? "false" : "0"),
                 2);
}

}  // namespace

void print_assumptions(std::ostream& out, const session::Session& session) {
  print_usual_settings(out, session);
  if (!session.workload) return;
  const workload::Caveats& caveats = session.workload->caveats;
  if (!caveats.not_modelled.empty()) {
    out << "\nNot in this prediction, so that it is rough and excludes nothing because of its memory\n";
    print_list(out, caveats.not_modelled);
  }
  if (!caveats.also_not_modelled.empty()) {
    out << (caveats.not_modelled.empty() ? "\nNot in this prediction\n" : "\nNor in it\n");
    print_list(out, caveats.also_not_modelled);
  }
}

void print_space(const PlanText& text) {
  const forecast::PlanStudy& study = text.study;
  const auto line = [&](std::int64_t count, const std::string& what) {
    text.out << fmt::format("  {:>13}  {}\n", count, what);
  };
  text.out << "\nSpace\n";
  if (study.configurations) {
    line(study.lattice, "combinations of the values");
    for (const auto& [reason, count] : study.excluded) line(-count, reason);
    if (study.same_meaning > 0)
      line(-study.same_meaning, "equivalent to another: they differ only in settings that have no effect");
    line(*study.configurations, "configurations");
  } else {
    text.out << "  size unknown: it has continuous parameters\n";
    for (const space::Expression& constraint : text.session.space.constraints()) {
      text.out << "  where " << constraint.text() << '\n';
    }
  }
  if (!text.session.usable_per_rank) return;
  if (study.is_sample()) {
    print_shares(text);
  } else {
    print_counts(text);
  }
}

namespace {

// Without a GPU nobody knows what fits, but the bytes of the baseline are known.
std::string memory_without_limit(const session::Session& session) {
  if (!session.workload) return "not known; give a \"workload\" to have it predicted";
  std::string needed = "not known";
  if (session.baseline) {
    const auto estimate = cost::MemoryModel(*session.workload, session.cluster, session.memory)
                              .estimate_if_modelled(session::modelled_part(*session.baseline));
    if (estimate) needed = fmt::format("{} a rank in the baseline, at its peak", to_string(estimate->expected));
  }
  return needed + "; whether it fits is known once you name a \"gpu\", or give \"limit_gib\" in the block \"memory\"";
}

}  // namespace

void print_memory(const PlanText& text) {
  if (text.study.stages.empty()) {
    text.out << "\nMemory\n" << wrapped("  " + memory_without_limit(text.session), 2);
    return;
  }
  text.out << fmt::format("\nMemory of one rank, {} usable\n", to_string(*text.session.usable_per_rank))
           << indented(report::render(stage_table(text.study), report::TableFormat::kTable));
  text.out << "\nWhere it goes at the peak\n"
           << indented(
                  report::render(term_table(text.answers, *text.session.usable_per_rank), report::TableFormat::kTable));
  for (const auto& [number, stage] : text.study.stages) {
    text.out << wrapped(fmt::format("  stage {}: {}", number, report::short_text(text.session, stage.example)), 11);
  }
}

// The sections of `krigtune plan` that predict times.
namespace {

constexpr double kNegligible = 0.005;  // fraction of a step

struct Share {
  const char* name;
  double seconds;
  std::string what;
};

std::string communication_text(const cost::StepCost& cost) {
  std::vector<std::string> parts;
  const auto add = [&](double seconds, const char* of) {
    if (seconds > 0.0) parts.push_back(fmt::format("{} of {} parallelism", duration_text(seconds), of));
  };
  add(cost.data_comm_s, "data");
  add(cost.tensor_comm_s, "tensor");
  add(cost.context_comm_s, "context");
  add(cost.expert_comm_s, "expert");
  add(cost.pipeline_comm_s, "pipeline");
  const std::string all = parts.empty() ? "" : ", of " + join(parts, " and ");
  return "while no kernel runs" + all;
}

std::vector<Share> shares_of(const cost::StepCost& cost) {
  const std::string recomputed = cost.recompute_s > 0.0 ? fmt::format(", {} of it once more for the backward pass",
                                                                      duration_text(cost.recompute_s))
                                                        : "";
  return {{"products", cost.products_s, "matrix products and attention" + recomputed},
          {"memory-bound", cost.memory_bound_s, "elementwise kernels, norms, losses"},
          {"optimizer", cost.optimizer_s, "the update on the device"},
          {"communication", cost.exposed_comm_s, communication_text(cost)},
          {"offload", cost.offload_s, "copies and host work while no kernel runs"},
          {"bubble", cost.bubble_s, "pipeline stages without work"},
          {"idle", cost.idle_s, "kernels that were not issued yet, data, logging"}};
}

}  // namespace

void print_step_shares(std::ostream& out, const cost::StepCost& cost) {
  for (const Share& share : shares_of(cost)) {
    if (share.seconds < kNegligible * cost.step_time_s) continue;
    out << wrapped(fmt::format("  {:<13}  {:>8}  {:>3.0f} %  {}", share.name, duration_text(share.seconds),
                               100.0 * share.seconds / cost.step_time_s, share.what),
                   34);
  }
}

namespace {

// "row 2" of the table of the best.
std::string analysed_row(const PlanText& text) { return fmt::format("row {}", text.study.analysed + 1); }

void print_breakdown(const PlanText& text, const cost::StepCost& cost) {
  text.out << fmt::format("\nThe step of {}, {}, bound by {}\n", analysed_row(text), duration_text(cost.step_time_s),
                          cost::to_string(cost.bottleneck()));
  print_step_shares(text.out, cost);
}

// Prints the conventions of the utilization, and a warning if it exceeds that of any published run.
void print_utilization(const PlanText& text) {
  const auto& used = text.study.analysed_candidate().forecast.utilization;
  if (!used) return;
  text.out << wrapped(fmt::format("  {}", report::mfu_convention(text.session)), 4)
           << fmt::format("  {}: {} tokens/s a GPU, MFU {} ({} without attention), HFU {}\n", analysed_row(text),
                          report::rate_text(used->tokens_per_s_per_gpu), report::share_text(used->mfu),
                          report::share_text(used->mfu_without_attention), report::share_text(used->hfu));
  if (!used->too_good) return;
  text.out << wrapped(
      fmt::format("  warning: {} of the peak is too good to be true: published runs of dense transformers stay below "
                  "60 % of the peak of their products. Check \"gpu\", \"precision\" and the sizes of the model before "
                  "you trust these times.",
                  report::share_text(used->mfu)),
      4);
}

// Prints how far to trust the times, and which row the rest of the output is about. Where the machine itself was
// measured, published runs say nothing about it.
void print_how_sure(const PlanText& text) {
  if (text.session.cluster.device && !text.session.cluster.measured) {
    const fleet::StepTimeRange range = fleet::step_time_range(*text.session.workload);
    text.out << wrapped(fmt::format("  how sure: {} took {:.2f} to {:.2f} times as long as predicted; rows less than "
                                    "10 % apart have to be measured to be told apart",
                                    range.subject, range.low, range.high),
                        4);
  }
  if (!text.session.others.empty()) {
    text.out << wrapped(fmt::format("  this order is {}; krigtune tune searches the front of all of them",
                                    report::first_objective_note(text.session)),
                        4);
  }
  if (text.study.analysed == 0) return;
  text.out << wrapped(
      fmt::format("  what follows is about {}, the fastest of them that surely fits", analysed_row(text)), 4);
}

std::string fits_text(const std::optional<plan::MemoryVerdict>& memory) {
  if (!memory) return "";
  const std::string bytes = to_string(memory->predicted);
  if (memory->verdict == plan::Verdict::kFits) return fmt::format(", {}", bytes);
  if (memory->verdict == plan::Verdict::kTooLarge) return fmt::format(", {}: too large", bytes);
  return fmt::format(", {}: fits with {:.0f} %", bytes, 100.0 * memory->probability_fits);
}

void print_baseline(const PlanText& text) {
  if (!text.answers.baseline) return;
  const forecast::Forecast& baseline = text.answers.baseline->forecast;
  const double gain = text.study.analysed_candidate().forecast.samples_per_s / baseline.samples_per_s;
  text.out << fmt::format("  baseline: {}, {} samples/s{}; {} is {} as fast\n",
                          duration_text(baseline.cost->step_time_s), report::rate_text(baseline.samples_per_s),
                          fits_text(baseline.memory), analysed_row(text), report::gain_text(gain));
}

void print_what_ifs(const PlanText& text) {
  text.out << "\nWhat would change it\n";
  for (const forecast::WhatIf& answer : text.answers.what_ifs) {
    if (answer.gain < 1.0 + kNegligible) continue;
    text.out << fmt::format("  {:<36}  {}\n", answer.change, report::gain_text(answer.gain));
  }
}

// Prints how much faster another configuration would be if it fitted.
void print_gain_of_memory(const PlanText& text, const forecast::Forecaster& forecaster) {
  const forecast::Candidate& best = text.study.analysed_candidate();
  const std::optional<forecast::Candidate>& limitless = text.study.best_without_limit;
  if (!limitless || !limitless->forecast.memory || best.forecast.samples_per_s <= 0.0) return;
  const double gain = limitless->forecast.samples_per_s / best.forecast.samples_per_s;
  if (forecaster.score(limitless->forecast) <= forecaster.score(best.forecast) || gain < 1.0 + kNegligible) return;
  const std::string what = fmt::format("{} of memory a rank", to_string(limitless->forecast.memory->predicted));
  text.out << fmt::format("  {:<36}  {}, by\n", what, report::gain_text(gain))
           << wrapped("    " + report::short_text(text.session, limitless->configuration), 4);
}

}  // namespace

void print_best(const PlanText& text, const forecast::Forecaster& forecaster) {
  const std::vector<forecast::Candidate>& best = text.study.best;
  if (!forecaster.knows_time()) {
    text.out << "\nTime of a step\n  not predicted: " << forecaster.why_no_time() << '\n';
    return;
  }
  if (best.empty()) return;
  text.out << (text.study.best_probably_fit()
                   ? fmt::format("\nPredicted best {} of those that fit more likely than not\n", best.size())
                   : fmt::format("\nNone is likely to fit: the {} likeliest\n", best.size()));
  const std::string shared = shared_text(text.session, best);
  if (!shared.empty()) text.out << wrapped((best.size() == 1 ? "  " : "  all with ") + shared, 4);
  text.out << indented(report::render(best_table(text.session, best), report::TableFormat::kTable))
           << "  alike: so many others differ in one parameter and by less than 0.5 %\n";
  if (best.size() > 1 && have_same_bound(best)) {
    text.out << fmt::format("  all of them are bound by {}\n",
                            cost::to_string(best.front().forecast.cost->bottleneck()));
  }
  print_how_sure(text);
  print_utilization(text);
  print_baseline(text);
  print_breakdown(text, *text.study.analysed_candidate().forecast.cost);
  print_what_ifs(text);
  print_gain_of_memory(text, forecaster);
}

void print_batch(const PlanText& text) {
  const forecast::BatchAnswer& batch = text.answers.batch;
  if (batch.by_micro_batch.empty()) return;
  const bool is_kept = text.session.workload->train_batch_size.has_value();
  text.out << fmt::format("\nBatch size, the rest as in {}\n", analysed_row(text))
           << indented(report::render(batch_table(batch.by_micro_batch, !is_kept), report::TableFormat::kTable))
           << "  plateau: from there on less than 5 % is gained, as far as memory allows\n";
  if (batch.by_accumulation.empty()) return;
  text.out << fmt::format("\nGradient accumulation, the rest as in {}\n", analysed_row(text))
           << indented(report::render(batch_table(batch.by_accumulation, true), report::TableFormat::kTable));
}

void print_communication(const PlanText& text) {
  const auto print_table = [&](const char* parameter, const std::vector<forecast::Variant>& variants) {
    if (variants.empty()) return;
    text.out << indented(report::render(volume_table(parameter, variants), report::TableFormat::kTable));
  };
  const forecast::PlanAnswers& answers = text.answers;
  if (answers.by_zero_stage.size() + answers.by_tensor_parallel.size() == 0 || text.session.cluster.ranks() == 1)
    return;
  text.out << fmt::format("\nCommunication of one rank in a step, the rest as in {}\n", analysed_row(text));
  print_table("zero_stage", answers.by_zero_stage);
  if (!answers.by_zero_stage.empty() && !answers.by_tensor_parallel.empty()) text.out << '\n';
  print_table("tensor_parallel", answers.by_tensor_parallel);
}

namespace {

std::string hours_text(const session::Session& session, double seconds) {
  constexpr double kHour = 3600.0;
  const double hours = seconds / kHour * static_cast<double>(session.cluster.ranks());
  return fmt::format("{:.3g} {}", hours, session.cluster.hours_unit());
}

// For a runner that does not limit the duration of a trial.
void print_steps(const PlanText& text) {
  const std::vector<double>& steps = text.study.step_times_s;
  if (steps.empty()) return;
  constexpr double kSteps = 20.0;
  const double median = steps[steps.size() / 2];
  const double seconds = static_cast<double>(text.answers.time.trials) * kSteps * median;
  text.out << fmt::format("  steps take {} to {}, half of them less than {}\n", duration_text(steps.front()),
                          duration_text(steps.back()), duration_text(median))
           << fmt::format("  with 20 steps a trial: about {} ({}), plus the start-up of each trial\n",
                          duration_text(seconds), hours_text(text.session, seconds));
}

std::string trials_text(std::int64_t trials) { return counted(trials, "trial"); }

}  // namespace

void print_expected_time(const PlanText& text) {
  const session::Session& session = text.session;
  const forecast::ExpectedTime& time = text.answers.time;
  const std::string trials = trials_text(time.trials);
  text.out << "\nTime of the session\n";
  const trial::RunnerTraits traits = runner::traits_of(session.runner);
  const std::optional<trial::TrialTime> stated = runner::trial_time(session.runner);
  if (stated) {
    text.out << fmt::format("  about {}, {}: {} of at most {} each ({} warm-up, {} measurement){}\n",
                            duration_text(*time.trials_s), hours_text(session, *time.trials_s), trials,
                            duration_text(stated->total_s()), duration_text(stated->warmup_s),
                            duration_text(stated->measure_s), report::emulated_note(session));
  } else if (traits.runs_programs) {
    text.out << fmt::format("  {} of your program, at most {} each: at most {}, {}\n", trials,
                            duration_text(runner::timeout_s(session.runner)), duration_text(*time.most_trials_s),
                            hours_text(session, *time.most_trials_s));
  } else if (traits.by_hand) {
    text.out << "  unknown: you run the trials yourself (krigtune ask, krigtune tell)\n";
  } else {
    text.out << fmt::format("  {} at most, {}: nothing runs\n", trials, traits.words.trials_are);
    return;
  }
  if (!stated) print_steps(text);
  if (session.budget.hours) {
    text.out << fmt::format("  and no trial begins after {} hours\n", number_text(*session.budget.hours));
  }
}

}  // namespace krigtune::cli
