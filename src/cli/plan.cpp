// krigtune plan: everything that can be said before anything runs.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "document.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/cost/virtual_clock.h"
#include "krigtune/plan/build_plan.h"
#include "krigtune/plan/trace.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/tables_csv.h"
#include "loaded_run.h"
#include "plan_json.h"
#include "plan_text.h"
#include "show_config.h"
#include "this_machine.h"

namespace krigtune {
namespace {

void declare_plan(boost::program_options::options_description& options) {
  options.add_options()("csv", value_named("FILE"),
                        "write a row for each configuration, with its predicted memory and time, to FILE");
  options.add_options()("trace", value_named("FILE"),
                        "write one step of the predicted best to FILE, for chrome://tracing or Perfetto");
  declare_show_config(options);
}

void say_that_it_is_a_sample(const Context& context, const PlanStudy& study) {
  if (!study.is_sample()) return;
  context.log.warning(
      fmt::format("the space is too large to list: {} configurations drawn at random were looked at; "
                  "give its ranges fewer values (\"steps\") to see all",
                  study.looked_at()));
}

// Plans of krigtune-bench take milliseconds, a minute or two in all.
bool can_be_planned(const Space& space) {
  constexpr std::int64_t kMost = 20'000;
  return space.listable() && space.lattice_count() <= kMost;
}

PlanStudy study_with_progress(const Context& context, const Session& session, const Forecaster& forecaster,
                              std::string* csv) {
  const std::vector<std::string> columns = session.space.columns();
  StudyOptions options;
  options.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  if (csv != nullptr) {
    *csv = plan_header(columns);
    options.visit = [csv, columns](const Candidate& candidate) {
      *csv += plan_line(candidate.configuration, candidate.forecast, columns);
    };
  }
  if (context.log.is_live()) {
    options.progress = [&log = context.log](std::int64_t done, std::int64_t of) {
      log.status(fmt::format("{} of {} configurations looked at", done, of));
    };
  }
  PlanStudy study = study_plan(session, forecaster, options);
  if (context.log.is_live()) context.log.status("");
  return study;
}

void write_predicted_step(const Context& context, const std::filesystem::path& file, const Session& session,
                          const PlanStudy& study) {
  if (study.best.empty()) {
    context.log.warning(fmt::format("{} is not written: no time is predicted", file.string()));
    return;
  }
  const Configuration best = modelled_part(study.best.front().configuration);
  try {
    const StepPlan plan = build_plan(*session.workload, session.cluster, best);
    const PredictedStep step = predict_step(plan, make_machine(*session.workload, session.cluster));
    write_trace(file, plan, traced(step));
  } catch (const UserError& error) {
    context.log.warning(fmt::format("{} is not written: {}", file.string(), error.what()));
  }
}

void print_text(const Context& context, const Forecaster& forecaster, const PlanText& text) {
  print_job(text);
  print_parameters(text);
  print_assumptions(text);
  print_space(text);
  print_memory(text);
  print_best(text, forecaster);
  print_batch(text);
  print_communication(text);
  print_expected_time(text);
  for (const char* option : {"csv", "trace"}) {
    const std::optional<std::string> file = context.arguments.text(option);
    if (file && std::filesystem::exists(*file)) text.out << fmt::format("\n{}: written\n", *file);
  }
}

int plan_session(const Context& context) {
  Session session = session_of(context, context.arguments.operand());
  if (context.arguments.flag("show-config")) return show_config(context, session, {});
  const std::optional<std::string> csv = context.arguments.text("csv");
  const std::optional<std::string> trace = context.arguments.text("trace");
  if (trace) check_trace_file(*trace);
  know_this_machine(context, session);
  const MemoryFilter filter(session);
  const Forecaster forecaster(session, filter, csv && can_be_planned(session.space));
  std::string rows;
  const PlanStudy study = study_with_progress(context, session, forecaster, csv ? &rows : nullptr);
  if (csv) write_atomically(*csv, rows);
  if (trace) write_predicted_step(context, *trace, session, study);
  say_that_it_is_a_sample(context, study);
  const PlanAnswers answers = answers_of(session, filter, forecaster, study);
  if (context.arguments.flag("json")) {
    Json json = new_document("plan");
    json["session"] = session_name(session);
    json["emulated_network"] = emulated_json(session);
    json.update(to_json(session, forecaster, study, answers));
    if (csv) json["csv"] = *csv;
    if (trace) json["trace"] = *trace;
    print(context, json);
  } else {
    print_text(context, forecaster, {context.console.out, session, study, answers});
  }
  if (study.looked_at() > study.counts.too_large) return ExitCode::kDone;
  context.log.error("no configuration fits in memory; raise /memory/limit_gib, or widen the space");
  return ExitCode::kNoResult;
}

}  // namespace

Command plan_command() {
  return {"plan",
          "SESSION",
          "Shows what fits in memory, what will be fast and why, and what a session takes; runs nothing",
          "Lists every parameter, the size of the space, what is excluded and why, the memory of one rank by\n"
          "ZeRO stage and by term, the predicted best with the time of a step, where it goes and what would\n"
          "change it, how speed grows with the batch, what is sent over the network, and the expected time.\n"
          "It needs no GPU: devices and links are those that the session names.",
          declare_plan,
          plan_session};
}

}  // namespace krigtune
