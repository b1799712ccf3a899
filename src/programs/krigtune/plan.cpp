// krigtune plan: prints everything that can be predicted before anything runs.
#include "programs/krigtune/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "forecast/hypotheses.h"
#include "forecast/plan_study.h"
#include "forecast/predicted_step.h"
#include "page/plan/plan_page.h"
#include "plan/trace.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan_beside.h"
#include "programs/krigtune/plan_clusters.h"
#include "programs/krigtune/plan_text.h"
#include "programs/krigtune/report.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/show_config.h"
#include "programs/krigtune/this_machine.h"
#include "report/job_text.h"
#include "report/labels.h"
#include "report/memory_advice.h"
#include "report/tables_csv.h"
#include "search/model/job_words.h"

namespace krigtune::cli {

namespace {

Json terms_json(const forecast::MemoryTerms& memory) {
  Json terms = Json::object();
  for (int term = 0; term < schedule::kTermCount; ++term) {
    terms[schedule::to_string(static_cast<schedule::Term>(term))] = memory.term_bytes[static_cast<std::size_t>(term)];
  }
  terms["other"] = memory.other_bytes;
  return terms;
}

Json counts_json(const forecast::VerdictCounts& counts) {
  return {{"fit", counts.fit},
          {"uncertain", counts.uncertain},
          {"uncertain_expected_to_fit", json_number(counts.expected_to_run)},
          {"too_large", counts.too_large},
          {"not_modelled", counts.unknown}};
}

Json stage_json(const forecast::StageMemory& stage, const forecast::MemoryTerms* terms, Bytes usable) {
  Json json = {{"configurations", stage.counts.all()}};
  json.update(counts_json(stage.counts));
  json["smallest_peak_bytes"] = stage.smallest.count;
  json["largest_peak_bytes"] = stage.largest.count;
  json["example"] = {{"configuration", space::to_json(stage.example)}};
  if (terms == nullptr) return json;
  json["example"].update({{"peak_bytes", terms->peak.count},
                          {"peak_at", terms->peak_at},
                          {"headroom_bytes", (usable - terms->peak).count},
                          {"terms", terms_json(*terms)}});
  return json;
}

Json cost_json(const cost::StepCost& cost) {
  Json json = step_parts_json(cost);
  json["tensor_wire_bytes"] = json_number(cost.tensor_wire_bytes);
  json["data_wire_bytes"] = json_number(cost.data_wire_bytes);
  return json;
}

Json forecast_json(const forecast::Forecast& forecast) {
  Json json = Json::object();
  json["predicted_value"] = json_or_null(forecast.value);
  json["predicted_step_time_s"] = forecast.cost ? Json(forecast.cost->step_time_s) : Json(nullptr);
  json["predicted_samples_per_s"] = forecast.cost ? Json(forecast.samples_per_s) : Json(nullptr);
  json["predicted_memory_bytes"] = forecast.memory ? Json(forecast.memory->predicted.count) : Json(nullptr);
  json["memory_verdict"] = forecast.memory ? Json(plan::to_string(forecast.memory->verdict)) : Json(nullptr);
  json["probability_fits"] = forecast.memory ? Json(forecast.memory->probability_fits) : Json(nullptr);
  json["bottleneck"] = forecast.cost ? Json(cost::to_string(forecast.cost->bottleneck())) : Json(nullptr);
  const std::optional<cost::Utilization>& used = forecast.utilization;
  json["predicted_tokens_per_s_per_gpu"] = used ? json_number(used->tokens_per_s_per_gpu) : Json(nullptr);
  json["predicted_mfu"] = used ? json_number(used->mfu) : Json(nullptr);
  json["predicted_mfu_without_attention"] = used ? json_number(used->mfu_without_attention) : Json(nullptr);
  json["predicted_hfu"] = used ? json_number(used->hfu) : Json(nullptr);
  json["too_good"] = used && used->too_good;
  if (forecast.cost) json["breakdown"] = cost_json(*forecast.cost);
  return json;
}

}  // namespace

Json candidate_json(const forecast::Candidate& candidate) {
  Json json = {{"configuration", space::to_json(candidate.configuration)}};
  json.update(forecast_json(candidate.forecast));
  return json;
}

namespace {

Json variants_json(const std::vector<forecast::Variant>& variants) {
  Json json = Json::array();
  for (const forecast::Variant& variant : variants) json.push_back(candidate_json(variant.candidate));
  return json;
}

Json rows_json(const std::vector<forecast::BatchRow>& rows) {
  Json json = Json::array();
  for (const forecast::BatchRow& row : rows) {
    Json one = {{"micro_batch", row.micro_batch},
                {"gradient_accumulation_steps", row.accumulation},
                {"sequences", row.sequences},
                {"plateau", row.plateau}};
    one.update(forecast_json(row.forecast));
    json.push_back(std::move(one));
  }
  return json;
}

Json space_json(const session::Session& session, const forecast::PlanStudy& study) {
  Json json;
  json["parameters"] = Json::object();
  for (const space::Parameter& parameter : session.space.parameters())
    json["parameters"][parameter.name] = space::to_json(parameter);
  const space::Configuration& fixed = session.space.facts().fixed;
  if (!fixed.empty()) json["fixed"] = space::to_json(fixed);
  json["assumed"] = Json::object();
  for (const session::Assumption& one : session.assumptions) json["assumed"][one.name] = space::to_json(one.value);
  if (session.workload) {
    json["assumed_sizes"] = session.workload->caveats.assumed;
    json["not_in_this_prediction"] = session.workload->caveats.not_modelled;
    for (const std::string& caveat : session.workload->caveats.also_not_modelled)
      json["not_in_this_prediction"].push_back(caveat);
  }
  json["lattice_points"] = study.lattice;
  json["excluded"] = Json::object();
  for (const auto& [reason, count] : study.excluded) json["excluded"][reason] = count;
  json["same_meaning"] = study.same_meaning;
  json["configurations"] = study.configurations ? Json(*study.configurations) : Json(nullptr);
  json["looked_at"] = study.looked_at();
  json.update(counts_json(study.counts));
  const bool is_known = !study.is_sample();
  json["to_be_tried"] = is_known ? Json(study.looked_at() - study.counts.too_large) : Json(nullptr);
  return json;
}

Json expected_json(const session::Session& session, const forecast::PlanStudy& study,
                   const forecast::ExpectedTime& time) {
  constexpr double kHour = 3600.0;
  const auto hours = [&](const std::optional<double>& seconds) {
    return seconds ? json_number(*seconds / kHour * static_cast<double>(session.cluster.ranks())) : Json(nullptr);
  };
  const std::vector<double>& steps = study.step_times_s;
  return {{"trials", session.budget.trials},
          {"expected_trials", time.trials},
          {"expected_s", json_or_null(time.trials_s)},
          {"expected_gpu_hours", hours(time.trials_s)},
          {"at_most_s", json_or_null(time.most_trials_s)},
          {"at_most_gpu_hours", hours(time.most_trials_s)},
          {"median_step_time_s", steps.empty() ? Json(nullptr) : Json(steps[steps.size() / 2])}};
}

}  // namespace

std::optional<search::JobSummary> assumed_job(const session::Session& session, const session::MemoryFilter& filter) {
  if (session.workload) return std::nullopt;
  const auto hypotheses = forecast::Hypotheses::of(session, filter);
  return hypotheses ? std::optional(search::summary_before_trials(*hypotheses)) : std::nullopt;
}

unsigned plan_threads() { return std::clamp(std::thread::hardware_concurrency(), 1U, 16U); }

Json planned_json(const session::Session& session, const forecast::Forecaster& forecaster,
                  const forecast::PlanStudy& study, const forecast::PlanAnswers& answers,
                  const std::optional<search::JobSummary>& assumed, const BesidePlan& beside) {
  Json json = {{"session", session_name(session)}, {"emulated_network", emulated_json(session)}};
  json.update(space_json(session, study));
  const std::optional<Bytes>& usable = session.usable_per_rank;
  json["usable_bytes_per_rank"] = usable ? Json(usable->count) : Json(nullptr);
  json["memory_by_zero_stage"] = Json::object();
  for (const auto& [number, stage] : study.stages) {
    const auto terms = answers.terms.find(number);
    json["memory_by_zero_stage"][fmt::format("{}", number)] =
        stage_json(stage, terms == answers.terms.end() ? nullptr : &terms->second, *usable);
  }
  json["baseline"] = session.baseline ? space::to_json(*session.baseline) : Json(nullptr);
  json["no_time_because"] = forecaster.knows_time() ? Json(nullptr) : Json(forecaster.why_no_time());
  json["best"] = Json::array();
  for (const forecast::Candidate& candidate : study.best) {
    json["best"].push_back(candidate_json(candidate));
    json["best"].back()["similar"] = candidate.similar;
  }
  json["analysed"] = study.best.empty() ? Json(nullptr) : Json(study.analysed);
  json["baseline_forecast"] = answers.baseline ? candidate_json(*answers.baseline) : Json(nullptr);
  json["best_without_memory_limit"] =
      study.best_without_limit ? candidate_json(*study.best_without_limit) : Json(nullptr);
  json["what_if"] = Json::array();
  for (const forecast::WhatIf& answer : answers.what_ifs) {
    json["what_if"].push_back({{"change", answer.change}, {"gain", answer.gain}});
  }
  json["by_zero_stage"] = variants_json(answers.by_zero_stage);
  json["by_tensor_parallel"] = variants_json(answers.by_tensor_parallel);
  json["by_micro_batch"] = rows_json(answers.batch.by_micro_batch);
  json["by_accumulation"] = rows_json(answers.batch.by_accumulation);
  json["second_opinion"] = opinion_json(beside.near);
  json["whole_run"] = planned_run_json(beside.run);
  json.update(expected_json(session, study, answers.time));
  json["assumed_job"] = report::job_json(assumed);
  if (assumed) json["assumed_job"]["sentence"] = search::assumed_job_sentence(*assumed);
  return json;
}

namespace {

void declare_plan(boost::program_options::options_description& options) {
  options.add_options()("csv", value_named("FILE"),
                        "write every configuration with its predicted memory and time to FILE");
  options.add_options()(
      "trace", value_named("FILE"),
      "write one step of the fastest configuration that fits to FILE, for Perfetto or chrome://tracing");
  options.add_options()("html", typed_value_named("FILE"), "write memory, speed and what fits as an HTML page to FILE");
  declare_clusters(options);
  declare_show_config(options);
}

void say_that_it_is_a_sample(const Context& context, const forecast::PlanStudy& study) {
  if (!study.is_sample()) return;
  context.log.warning(
      fmt::format("the space is too large to list: {} configurations drawn at random were looked at; "
                  "give its ranges fewer values (\"steps\") to see all",
                  study.looked_at()));
}

// A plan of krigtune-bench takes milliseconds, so all of them take a minute or two.
bool can_be_planned(const space::Space& space) {
  constexpr std::int64_t kMost = 20'000;
  return space.listable() && space.lattice_count() <= kMost;
}

forecast::PlanStudy study_with_progress(const Context& context, const session::Session& session,
                                        const forecast::Forecaster& forecaster, std::string* csv,
                                        std::vector<forecast::Candidate>* looked_at) {
  const std::vector<std::string> columns = session.space.columns();
  forecast::StudyOptions options;
  options.threads = plan_threads();
  if (csv != nullptr) *csv = report::plan_header(columns);
  if (csv != nullptr || looked_at != nullptr) {
    options.visit = [csv, looked_at, columns](const forecast::Candidate& candidate) {
      if (csv != nullptr) *csv += report::plan_line(candidate.configuration, candidate.forecast, columns);
      if (looked_at != nullptr) looked_at->push_back(candidate);
    };
  }
  if (context.log.is_live()) {
    options.progress = [&log = context.log](std::int64_t done, std::int64_t of) {
      log.status(fmt::format("{} of {} configurations looked at", done, of));
    };
  }
  forecast::PlanStudy study = forecast::study_plan(session, forecaster, options);
  if (context.log.is_live()) context.log.status("");
  return study;
}

// Returns whether the step was written. If no configuration fits, there is no step.
bool write_predicted_step(const Context& context, const std::filesystem::path& file, const session::Session& session,
                          const forecast::Forecaster& forecaster, const forecast::PlanStudy& study) {
  if (study.best.empty()) {
    context.log.warning(
        fmt::format("{} is not written: there is no configuration whose step is predicted", file.string()));
    return false;
  }
  write_atomically(file, forecast::predicted_trace(session, forecaster, study.analysed_candidate().configuration));
  return true;
}

void print_text(const forecast::Forecaster& forecaster, const PlanText& text, const std::vector<std::string>& written) {
  print_job(text);
  print_parameters(text);
  print_assumptions(text.out, text.session);
  print_space(text);
  print_memory(text);
  print_best(text, forecaster);
  print_opinion(text.out, text.beside);
  print_planned_run(text.out, text.session, text.beside);
  print_batch(text);
  print_communication(text);
  print_expected_time(text);
  for (const std::string& file : written) text.out << fmt::format("\n{}: written\n", file);
}

// The files that the options name.
struct PlanFiles {
  std::optional<std::string> csv;
  std::optional<std::string> trace;
  std::optional<std::string> html;

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const std::optional<std::string>& file : {csv, trace, html}) {
      if (file) names.push_back(*file);
    }
    return names;
  }
};

PlanFiles wanted_files(const Context& context) {
  PlanFiles files{context.arguments.text("csv"), context.arguments.text("trace"), context.arguments.text("html")};
  if (files.trace) plan::check_trace_file(*files.trace);
  return files;
}

void refuse_trace_without_times(const Context& context, const forecast::Forecaster& forecaster) {
  if (forecaster.knows_time()) return;
  throw UserError(
      fmt::format("{}: no step can be predicted: {}", context.arguments.named("trace"), forecaster.why_no_time()),
      "leave it out");
}

void print_plan(const Context& context, const session::Session& session, const forecast::Forecaster& forecaster,
                const forecast::PlanStudy& study, const forecast::PlanAnswers& answers,
                const std::optional<search::JobSummary>& assumed, const BesidePlan& beside, const PlanFiles& written) {
  if (!context.arguments.flag("json")) {
    print_text(forecaster, {context.console.out, session, study, answers, assumed, beside}, written.names());
    return;
  }
  Json json = new_document("plan");
  json.update(planned_json(session, forecaster, study, answers, assumed, beside));
  if (written.csv) json["csv"] = *written.csv;
  if (written.trace) json["trace"] = *written.trace;
  if (written.html) json["html"] = *written.html;
  print(context, json);
}

int plan_session(const Context& context) {
  check_clusters_options(context.arguments);
  if (context.arguments.flag("show-config"))
    return show_config(context, session_of(context, context.arguments.operand()), {});
  const Json json = load_json(context.arguments.operand());
  if (plans_clusters(context.arguments, json)) return plan_clusters(context, json);
  session::Session session = session_of(context, context.arguments.operand(), json);
  PlanFiles files = wanted_files(context);
  know_this_machine(context, session);
  const session::MemoryFilter filter(session);
  const forecast::Forecaster forecaster(session, filter, files.csv && can_be_planned(session.space));
  if (files.trace) refuse_trace_without_times(context, forecaster);
  std::string rows;
  std::vector<forecast::Candidate> looked_at;
  const forecast::PlanStudy study =
      study_with_progress(context, session, forecaster, files.csv ? &rows : nullptr, files.html ? &looked_at : nullptr);
  if (files.csv) write_atomically(*files.csv, rows);
  if (files.trace && !write_predicted_step(context, *files.trace, session, forecaster, study)) files.trace.reset();
  say_that_it_is_a_sample(context, study);
  const forecast::PlanAnswers answers = forecast::answers_of(session, filter, forecaster, study);
  const BesidePlan beside = beside_plan(session, study, context.arguments.positive_number("tokens"));
  if (files.html) {
    write_atomically(*files.html, page::plan_page({session, study, answers, looked_at, beside.near,
                                                   planned_run_lines(session, beside), session_name(session),
                                                   minute_of(context.console.clock)}));
  }
  print_plan(context, session, forecaster, study, answers, assumed_job(session, filter), beside, files);
  if (!study.nothing_fits()) return ExitCode::kDone;
  context.log.error("no configuration fits in memory; " + report::memory_advice(session));
  return ExitCode::kNoResult;
}

}  // namespace

Command plan_command() {
  return {
      "plan",
      "SESSION",
      "Predicts what fits in memory, what is fast, and why",
      "Nothing is run. plan lists the parameters, the size of the space, what is excluded and why, the memory of "
      "one rank by ZeRO stage and by term, the best predicted configurations, where the time of a step goes and "
      "what would shorten it, how throughput grows with the batch, the network traffic, and how long the session "
      "will take. It needs no GPU: devices and links are those that the session names. With --clusters, or if the "
      "session lists \"clusters\", it plans the job on many machines, and says which is the cheapest "
      "(docs/howto/which_machine.md). With an amount of data (\"tokens\" in the session, --tokens) it says how long "
      "the "
      "whole training takes. Exit code 1: nothing fits, or no cluster meets --by; the plan is printed all the same.",
      declare_plan,
      plan_session};
}

}  // namespace krigtune::cli
