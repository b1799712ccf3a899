// krigtune diagnose: explains what limits a configuration, and what would change that.
#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "core/error.h"
#include "diagnose/bench_parts.h"
#include "diagnose/log_parts.h"
#include "diagnose/observations.h"
#include "diagnose/progress_bars.h"
#include "diagnose/trace_parts.h"
#include "jobs/recipe/recipe.h"
#include "jobs/recipe/shipped_recipes.h"
#include "programs/krigtune/diagnose_hints.h"
#include "programs/krigtune/diagnose_text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/measure_text.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/this_machine.h"
#include "runner/bench.h"
#include "trial/measure_reader.h"

namespace krigtune::cli {
namespace {

constexpr const char* kUsage =
    "usage: krigtune diagnose DIR or RESULT.json, --plan SESSION, --trace FILE, or --log FILE";

void declare_diagnose(boost::program_options::options_description& options) {
  options.add_options()("plan", typed_value_named("SESSION"),
                        "diagnose the baseline of this session by the models alone, without any run");
  options.add_options()(
      "try", typed_value_named("JSON"),
      "with --plan: diagnose this configuration, as in '{\"micro_batch\": 4}', completed from the baseline");
  options.add_options()("trace", typed_value_named("FILE"),
                        "diagnose a trace of torch.profiler (JSON, also gzipped) or of krigtune-bench --trace");
  options.add_options()("log", typed_value_named("FILE"),
                        "diagnose what a job printed: step times, DeepSpeed's wall_clock_breakdown, Megatron's timers; "
                        "or the directory of DeepSpeed's csv_monitor");
  options.add_options()("recipe", typed_value_named("RECIPE"),
                        "with --log: read it as this recipe does (default: the recipe that finds most steps)");
  options.add_options()("trial", typed_value_named("N"), "the number of the trial in DIR (default: the best)");
}

void say(const Context& context, const session::Session& session, const diagnose::Diagnosis& diagnosis,
         const Json& about, const std::string& subject) {
  const Hints hints = diagnosis.measured_step_s ? hints_of(context, diagnosis.verdicts) : Hints();
  if (!context.arguments.flag("json")) {
    print_diagnosis(context.console.out, session, diagnosis, subject);
    return print_hints(context, hints);
  }
  Json json = new_document("diagnose");
  json.update(about);
  json.update(to_json(session, diagnosis));
  json["environment"] = to_json(hints);
  print(context, json);
}

space::Configuration planned_configuration(const Context& context, const session::Session& session) {
  if (const auto text = context.arguments.text("try")) return session::read_try(session, *text, "--try");
  if (session.baseline) return *session.baseline;
  throw UserError(fmt::format("{}: the session has no baseline to diagnose", session.file.string()),
                  "name a configuration, as in --try '{\"micro_batch\": 4}'");
}

int diagnose_plan(const Context& context, const std::string& file) {
  session::Session session = session_of(context, file);
  const space::Configuration configuration = planned_configuration(context, session);
  know_this_machine(context, session);
  const session::MemoryFilter filter(session);
  diagnose::JobModel model(session, filter);
  const diagnose::Diagnosis diagnosis = diagnose::diagnose(model, configuration);
  const char* const what = context.arguments.text("try") ? "a configuration" : "the baseline";
  say(context, session, diagnosis, {{"session", session_name(session)}, {"directory", nullptr}, {"trial", nullptr}},
      fmt::format("{} of {}", what, session_name(session)));
  return ExitCode::kDone;
}

// Returns the trial that the user named, otherwise the recommended one.
const journal::Trial& wanted_trial(const Context& context, const LoadedRun& run) {
  constexpr std::int64_t kMost = 1'000'000'000;
  std::optional<std::int64_t> number = context.arguments.integer("trial", 0, kMost);
  const std::string where = run.directory.string();
  if (!number) {
    const report::RunView view = run.view(context.console);
    if (!view.answer.best) {
      throw UserError(fmt::format("{}: no trial has succeeded yet, so there is no best one", where),
                      "wait for one, or name a trial that ran out of memory with --trial");
    }
    number = view.answer.best->trial;
  }
  if (const journal::Trial* found = search::find_trial(run.history, *number)) return *found;
  throw UserError(fmt::format("{}: there is no trial {}", where, *number),
                  fmt::format("it has {} trials: krigtune results {}", run.history.size(), where));
}

// The trial's own observation comes first, followed by those of the other trials.
diagnose::Seen seen_of(const session::Session& session, const search::History& history, const journal::Trial& trial) {
  diagnose::Seen seen;
  const auto* measured = std::get_if<trial::Measured>(&*trial.outcome);
  if (measured == nullptr) return {{}, true};
  const auto own = diagnose::observation_of(session, trial.proposal.configuration, *measured);
  if (!own) {
    throw UserError(fmt::format("trial {} does not say how long a step took", trial.number),
                    "its runner has to measure step_time_s, samples_per_s or tokens_per_s (docs/measure.md)");
  }
  seen.observations.push_back(*own);
  for (const journal::Trial& other : history) {
    if (other.number == trial.number || !other.outcome) continue;
    const auto* result = std::get_if<trial::Measured>(&*other.outcome);
    if (result == nullptr) continue;
    const auto one = diagnose::observation_of(session, other.proposal.configuration, *result);
    if (one) seen.observations.push_back(*one);
  }
  return seen;
}

// Only a trial that was measured or ran out of memory can be explained.
void check_outcome(const journal::Trial& trial, const std::filesystem::path& directory) {
  const std::string hint =
      fmt::format("name one that is ok or ran out of memory: krigtune results {}", directory.string());
  if (!trial.outcome) throw UserError(fmt::format("trial {} is still running", trial.number), hint);
  if (std::holds_alternative<trial::Measured>(*trial.outcome)) return;
  if (std::holds_alternative<trial::OutOfMemory>(*trial.outcome)) return;
  const std::string reason = trial::reason_text(*trial.outcome);
  throw UserError(fmt::format("trial {} has no measurement: {}{}", trial.number, trial::status_text(*trial.outcome),
                              reason.empty() ? "" : " (" + reason + ")"),
                  hint);
}

int diagnose_run(const Context& context, const std::filesystem::path& directory) {
  LoadedRun run(context, directory);
  const journal::Trial& trial = wanted_trial(context, run);
  check_outcome(trial, directory);
  session::Session session = run.session();
  know_this_machine(context, session, directory);
  const session::MemoryFilter filter(session);
  diagnose::JobModel model(session, filter);
  const diagnose::Seen seen = seen_of(session, run.history, trial);
  const diagnose::Diagnosis diagnosis = diagnose::diagnose(model, trial.proposal.configuration, seen);
  say(context, session, diagnosis, {{"session", nullptr}, {"directory", directory.string()}, {"trial", trial.number}},
      fmt::format("trial {} of {}", trial.number, directory_name(directory)));
  return ExitCode::kDone;
}

void say(const Context& context, const diagnose::MeasuredParts& measured, const std::string& file) {
  const Hints hints = hints_of(context, diagnose::verdicts_of(measured));
  if (!context.arguments.flag("json")) {
    print_parts(context.console.out, measured, file);
    return print_hints(context, hints);
  }
  Json json = new_document("diagnose");
  json["file"] = file;
  json.update(to_json(measured));
  json["environment"] = to_json(hints);
  print(context, json);
}

int diagnose_trace(const Context& context, const std::string& file) {
  say(context, diagnose::parts_of(diagnose::read_trace(file)), file);
  return ExitCode::kDone;
}

// The contents of one log, read by one recipe.
struct ReadSteps {
  diagnose::StepTimesOfLog steps;
  diagnose::PrintedBreakdown printed;
  diagnose::MegatronTimers timers;
  diagnose::ProgressBars bars;
  diagnose::StepTimesOfLog engine_rates{{}, "sample"};
};

// Returns the step times of the first metric that gives them, without the warm-up. For a rate they are times per token
// or per sample.
diagnose::StepTimesOfLog step_times_of(const trial::Measurement& measurement) {
  struct Unit {
    const char* metric;
    const char* name;
    bool is_rate;
  };
  constexpr Unit kUnits[] = {
      {trial::kStepTime, "step", false}, {trial::kTokensRate, "token", true}, {trial::kSamplesRate, "sample", true}};
  const trial::MeasureSpec& spec = measurement.spec();
  for (const Unit& unit : kUnits) {
    for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
      if (spec.metrics[i].name != unit.metric) continue;
      const std::vector<double> values = measurement.step_values(i);
      const std::size_t warmup = std::min(static_cast<std::size_t>(spec.warmup_steps), values.size() / 2);
      diagnose::StepTimesOfLog times{{}, unit.name};
      for (std::size_t step = warmup; step < values.size(); ++step) {
        if (values[step] > 0.0) times.seconds.push_back(unit.is_rate ? 1.0 / values[step] : values[step]);
      }
      if (!times.seconds.empty()) return times;
    }
  }
  return {};
}

ReadSteps read_steps(const std::filesystem::path& file, trial::MeasureSpec spec) {
  spec.checks.clear();  // the log has no intended values to compare with
  trial::Measurement measurement(std::move(spec), {});
  ReadSteps read;
  trial::measure_file(measurement, file, [&](const std::string& line, const std::vector<trial::LineMatch>&) {
    read.printed.take(line);
    read.timers.take(line);
    read.bars.take(line);
    if (const auto rate = diagnose::printed_samples_per_s(line)) read.engine_rates.seconds.push_back(1.0 / *rate);
  });
  read.steps = step_times_of(measurement);
  return read;
}

int diagnose_log(const Context& context, const std::string& file) {
  if (const auto monitor = diagnose::read_monitor(file)) {
    say(context, diagnose::parts_of_log(monitor->steps, monitor->printed), file);
    return ExitCode::kDone;
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw UserError(fmt::format("--log: '{}' is neither a file nor a folder of DeepSpeed's csv_monitor", file),
                    "check the path");
  }
  ReadSteps best;
  if (const auto recipe = context.arguments.text("recipe")) {
    best = read_steps(file, measures_of_recipe(*recipe));
  } else {
    for (const std::string& name : jobs::shipped_names()) {
      if (jobs::find_recipe(name).measure.empty()) continue;
      ReadSteps read = read_steps(file, measures_of_recipe(name));
      if (best.steps.seconds.size() <= read.steps.seconds.size()) best = std::move(read);
    }
  }
  // They are less exact than what a script prints itself, and most logs have one of them.
  for (diagnose::StepTimesOfLog& other : std::array{std::move(best.engine_rates), best.bars.steps()}) {
    constexpr std::size_t kEnoughSteps = 3;
    if (best.steps.seconds.size() < kEnoughSteps && other.seconds.size() >= kEnoughSteps) best.steps = std::move(other);
  }
  say(context, diagnose::parts_of_log(best.steps, best.printed, best.timers), file);
  return ExitCode::kDone;
}

// Diagnoses a result of krigtune-bench. If its session is given, the models are used too.
int diagnose_result(const Context& context, const std::string& file, const std::optional<std::string>& session_file) {
  const Json document = load_json(file);
  const diagnose::MeasuredParts measured = diagnose::parts_of_bench(document, file);
  if (!session_file) {
    say(context, measured, file);
    return ExitCode::kDone;
  }
  session::Session session = session_of(context, *session_file);
  const space::Configuration configuration =
      space::configuration_from_json(document.at("configuration"), file, "/configuration");
  know_this_machine(context, session);
  const session::MemoryFilter filter(session);
  diagnose::JobModel model(session, filter);
  trial::Measured result;
  result.metrics = runner::bench_metrics(document);
  const auto seen = diagnose::observation_of(session, configuration, result);
  if (!seen) throw UserError(file + ": it does not say how long a step took", "");
  say(context, session, diagnose::diagnose(model, configuration, {{*seen}, false}),
      {{"session", session_name(session)}, {"directory", nullptr}, {"trial", nullptr}}, file);
  return ExitCode::kDone;
}

// Exactly one thing is diagnosed; a result file may come with its session.
void check_arguments(const Arguments& arguments, bool is_file) {
  const bool has_operand = !arguments.operand().empty();
  const bool plan = arguments.text("plan").has_value();
  const bool trace = arguments.text("trace").has_value();
  const bool log = arguments.text("log").has_value();
  const int named = (has_operand ? 1 : 0) + (plan && !is_file ? 1 : 0) + (trace ? 1 : 0) + (log ? 1 : 0);
  if (named == 0) throw UserError("nothing to diagnose is named", kUsage);
  if (named > 1) throw UserError("more than one thing to diagnose is named", "name one; " + std::string(kUsage));
  if (arguments.text("trial") && (!has_operand || is_file)) {
    throw UserError("--trial: only run directories have trials", kUsage);
  }
  if (arguments.text("recipe") && !log) throw UserError("--recipe: only logs are read by recipes", "give --log FILE");
  if (arguments.text("try") && (!plan || is_file)) {
    throw UserError("--try without --plan: what has run has its configuration", kUsage);
  }
}

int run_diagnose(const Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string& operand = arguments.operand();
  std::error_code error;
  const bool is_file = !operand.empty() && std::filesystem::is_regular_file(operand, error);
  check_arguments(arguments, is_file);
  if (is_file) return diagnose_result(context, operand, arguments.text("plan"));
  if (const auto trace = arguments.text("trace")) return diagnose_trace(context, *trace);
  if (const auto log = arguments.text("log")) return diagnose_log(context, *log);
  if (const auto plan = arguments.text("plan")) return diagnose_plan(context, *plan);
  return diagnose_run(context, operand);
}

}  // namespace

Command diagnose_command() {
  return {"diagnose",
          "[DIR]",
          "Shows what limits a configuration, and what would help",
          "DIR is a run directory, whose measurements correct the models. It may also be a file that "
          "krigtune-bench --json wrote; add --plan SESSION to get advice for it. With --plan alone "
          "nothing has to have run. Each finding shows its share of the step, its number and its "
          "threshold; each piece of advice shows its predicted effect, its memory and its price. "
          "Findings from a bench result, --trace or --log are measured, without any model. See "
          "docs/diagnose.md.",
          declare_diagnose,
          run_diagnose};
}

}  // namespace krigtune::cli
