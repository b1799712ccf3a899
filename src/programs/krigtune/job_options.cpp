#include "programs/krigtune/job_options.h"

#include <fmt/format.h>

#include <array>

#include "core/environment.h"
#include "core/error.h"
#include "core/json.h"
#include "engine/gpu_probe.h"
#include "jobs/session/seen_facts.h"
#include "machine/hardware_file.h"
#include "programs/krigtune/deepspeed_options.h"
#include "programs/krigtune/session_state.h"
#include "run/run_directory.h"

namespace krigtune::cli {
namespace {

constexpr const char* kRecipe = "recipe";
constexpr const char* kVary = "vary";
constexpr const char* kMetric = "metric";
constexpr const char* kMeasure = "measure";
constexpr const char* kMinimize = "minimize";
constexpr const char* kFinal = "final";
constexpr const char* kWarmupSteps = "warmup-steps";
constexpr const char* kMeasureSteps = "measure-steps";
constexpr std::int64_t kMostSteps = 1'000'000;
constexpr const char* kJobExample =
    "krigtune tune --vary 'micro_batch=--mbs:1,2,4,8' --metric 'tokens/s ([0-9.]+)' -- python train.py --mbs 4";

// The request without a command.
jobs::JobRequest surroundings_of(const Context& context) {
  jobs::JobRequest request;
  request.directory = std::filesystem::current_path();
  request.variable = environment_variable;
  request.find_gpus = [] {
    const engine::GpuProbe probe = engine::probe_gpus();
    return workload::NodeGpus{probe.gpus, probe.name, probe.memory_bytes};
  };
  request.find_network = [] { return machine::network_id_of("/"); };
  request.executor = context.arguments.text("executor", "");
  return request;
}

jobs::JobRequest job_request(const Context& context) {
  const Arguments& arguments = context.arguments;
  jobs::JobRequest request = surroundings_of(context);
  request.command = arguments.users_command();
  request.vary = arguments.texts(kVary);
  request.metric = arguments.text(kMetric);
  request.measure = arguments.texts(kMeasure);
  request.minimize = arguments.flag(kMinimize);
  request.last_line = arguments.flag(kFinal);
  request.warmup_steps = arguments.integer(kWarmupSteps, 0, kMostSteps);
  request.measure_steps = arguments.integer(kMeasureSteps, 1, kMostSteps);
  request.recipe = arguments.text(kRecipe, "");
  request.count_parameters = count_parameters_of(context);
  request.typed_as = fmt::format("{} tune", context.console.typed_as);
  return request;
}

}  // namespace

void declare_job(boost::program_options::options_description& options) {
  options.add_options()(kRecipe, typed_value_named("R"),
                        "the kind of job that COMMAND is, if it is not recognised: the name of a recipe (krigtune "
                        "recipes) or a recipe file");
  options.add_options()(
      kVary, repeated_value_named("NAME=FLAG:VALUES"),
      "vary a parameter of COMMAND, as in 'micro_batch=--mbs:1,2,4'; may be repeated. FLAG is --mbs, train.lr= (an "
      "override), $LR (a variable) or conf.yaml#train.lr (a key of a file in the command). VALUES are 1,2,4 or a,b,c "
      "or 1..8 or 1..64:log2 or 1e-5..1e-2:log, or true,false for a switch");
  options.add_options()(
      kMetric, typed_value_named("REGEX"),
      "maximize the printed number in the group of REGEX, as in 'tokens/s ([0-9.]+)'. The median of its lines counts. "
      "Or throughput, tokens_per_second or latency: of the steps that COMMAND reports with krigtune's Python package");
  options.add_options()(
      kMeasure, repeated_value_named("NAME=REGEX"),
      "also read this number, as in 'peak_memory_bytes=max mem ([0-9.]+) GiB' or 'loss=loss ([^ ]+)'; may be repeated. "
      "The search learns from memory, and a loss that is not a number ends the trial");
  options.add_options()(kMinimize, "with --metric: minimize it");
  options.add_options()(
      kFinal, "with --metric: the last line counts, and every trial runs to its end, as for a validation loss");
  options.add_options()(kWarmupSteps, value_named("N"),
                        "leave out the first N measurements of a trial, the warm-up (default: the recipe's, or 5)");
  options.add_options()(kMeasureSteps, value_named("N"),
                        "end a trial after N measurements that count (default: the recipe's, or 10)");
}

void declare_no_model_run(boost::program_options::options_description& options) {
  options.add_options()(kNoModelRun,
                        "do not let the transformers of COMMAND's Python count the parameters of its model; with "
                        "--deepspeed also do not launch the job once to find its size");
}

std::function<std::string(const jobs::ProbedCommand&, Json&)> count_parameters_of(const Context& context) {
  if (context.arguments.flag(kNoModelRun)) return {};
  return [&clock = context.console.clock](const jobs::ProbedCommand& job, Json& workload) {
    return jobs::count_parameters(job, clock, workload);
  };
}

void refuse_job_options(const Context& context) {
  for (const char* option : {kRecipe, kVary, kMetric, kMeasure, kMinimize, kFinal, kWarmupSteps, kMeasureSteps}) {
    if (!context.arguments.flag(option)) continue;
    if (context.arguments.flag(kDeepSpeedOption)) {
      throw UserError(fmt::format("--{} and --deepspeed cannot be combined", option),
                      "leave one of them out: ds_config.json says what --deepspeed searches");
    }
    throw UserError(fmt::format("--{} needs a command after --", option), kJobExample);
  }
}

jobs::JobSession job_session_of(const Context& context) {
  jobs::JobRequest request = job_request(context);
  request.session = context.arguments.operand();
  jobs::JobSession made = jobs::session_of_job(request);
  show_remarks(context, made.remarks);
  for (const std::string& warning : made.session.warnings) context.log.warning(warning);
  return made;
}

namespace {

// A run goes on with what it was begun with, wherever that is. Returns false if that is nothing.
bool recall_seen_facts(const std::filesystem::path& directory, Json& session) {
  if (!session.is_object() || session.contains("workload") || session.contains("cluster")) return false;
  const Json record = load_json(run::session_path(directory));
  bool recalls = false;
  for (const char* key : {"cluster", "framework", "memory"}) {
    if (!record.contains(key) || session.contains(key)) continue;
    session[key] = record[key];
    recalls = true;
  }
  return recalls;
}

}  // namespace

FileSession session_of_file(const Context& context, const std::filesystem::path& file,
                            const std::filesystem::path& run_directory, bool looks) {
  return session_of_json(context, load_json(file), file, run_directory, looks);
}

FileSession session_of_json(const Context& context, Json json, const std::filesystem::path& file,
                            const std::filesystem::path& run_directory, bool looks) {
  jobs::JobRequest surroundings = surroundings_of(context);
  surroundings.directory = std::filesystem::absolute(file).parent_path();
  const bool is_begun = !run_directory.empty() && std::filesystem::exists(run::session_path(run_directory));
  std::vector<std::string> lines;
  const bool adds =
      is_begun ? recall_seen_facts(run_directory, json) : looks && jobs::add_seen_facts(json, surroundings, lines);
  FileSession found{session::read_session(json, file.string(), surroundings.directory), std::nullopt};
  found.session.file = file;
  if (adds) found.source = SessionSource{std::move(json), "session file or this machine"};
  if (!jobs::predicts_steps(found.session)) return found;
  for (const std::string& line : lines) context.log.progress(line);
  return found;
}

std::string job_session_text(const Context& context, const std::filesystem::path& file) {
  jobs::JobRequest request = job_request(context);
  request.written_in = std::filesystem::absolute(file).parent_path();
  const jobs::JobSession made = jobs::session_of_job(request);
  std::string text = fmt::format("// A session for the job of {}, to be edited; every key: docs/session.md.\n",
                                 made.session.file.string());
  show_remarks(context, made.remarks);
  show_caveats(context, made.session);
  for (const auto* lines : {&made.remarks, &made.notes}) {
    for (const std::string& line : *lines) text += fmt::format("// {}\n", line);
  }
  return text + made.json.dump(2) + "\n";
}

}  // namespace krigtune::cli
