#include "programs/bench/options.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <map>
#include <sstream>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "engine/gpu_probe.h"

namespace krigtune::bench {
namespace {

namespace po = boost::program_options;

constexpr const char* kSeeHelp = "see krigtune-bench --help";
constexpr const char* kCall = "krigtune-bench --config C.json [options]";
constexpr const char* kSummary = "trains one configuration for a short time and reports how fast it was";
constexpr const char* kExitCodes =
    "Exit codes: 0 ok; 1 --check found something; 2 bad input; 10 does not fit in\n"
    "memory, nothing was run; 11 out of memory; 12 hang; 13 another process of the\n"
    "job is gone; 14 the loss is not a number; 77 no GPU; 128 + n signal n.\n";
constexpr const char* kProcesses =
    "Under mpirun, srun or torchrun each process is one rank. Started alone, this\n"
    "program runs all ranks: as threads, or on GPUs as processes.\n";

// Wide enough for the widest option and 80 columns in all: help fits one screen (tests/bench/krigtune_bench_test.cpp).
po::options_description declare() {
  constexpr unsigned kColumns = 80;
  po::options_description declared("Options", kColumns);
  auto add = declared.add_options();
  add("config", po::value<std::string>()->value_name("C.json"),
      "the workload, cluster and memory (as in a session), and the configuration");
  add("json", "print one JSON document on stdout, in any case");
  add("steps", po::value<std::int64_t>()->value_name("N"), "run exactly N optimizer steps, warm-up included");
  add("warmup-s", po::value<double>()->value_name("S"), "warm up for S seconds, 3 steps or more (default: 2)");
  add("measure-s", po::value<double>()->value_name("S"),
      "measure for S seconds, less once the median is known to 1 % (default: 10)");
  add("memory-limit", po::value<double>()->value_name("GIB"), "memory of a rank, instead of limit_gib of C.json");
  add("device", po::value<std::string>()->value_name("KIND"), "auto, cpu or cuda (default: auto)");
  add("seed", po::value<std::uint64_t>()->value_name("N"), "seed of initial values and corpus (default: 1)");
  add("heartbeat", po::value<std::string>()->value_name("FILE"),
      "append a JSON line {phase, step, t_s} to FILE (or /dev/fd/N) after every step");
  add("hang-s", po::value<double>()->value_name("S"), "exit with 12 if no step ends in S s (default: 60)");
  add("trace", po::value<std::string>()->value_name("T.json"),
      "write one measured step for chrome://tracing or ui.perfetto.dev");
  add("cuda-graph", "on GPUs: capture steps as a CUDA graph and replay it");
  add("compare-null", "also measure steps without communication");
  add("measure-machine", po::value<std::int64_t>()->value_name("RANKS"),
      "measure kernels, copies and collectives of so many CPU ranks for about 5 s, as JSON");
  add("precision", po::value<std::string>()->value_name("TYPE"), "of --measure-machine: fp32 (default), fp16 or bf16");
  add("measure-rates",
      "measure products, copies and collectives by message size, as nccl-tests does, on all ranks of the job");
  add("check", "check the plan (order, collectives, memory, gradient, update) and run nothing");
  add("probe", "exit with 0 if a GPU can be used, with 77 if not");
  add("help", "print this help");
  add("version", "print the version");
  return declared;
}

po::variables_map parse(const std::vector<std::string>& arguments) {
  const po::options_description declared = declare();
  po::variables_map given;
  try {
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(declared).positional({}).style(style).run(), given);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : declared.options()) known.push_back("--" + option->long_name());
    throw UserError(fmt::format("unknown option '{}'", error.get_option_name()),
                    suggestion(error.get_option_name(), known));
  } catch (const po::error& error) {
    throw UserError(error.what(), kSeeHelp);
  }
  return given;
}

template <class T>
std::optional<T> find(const po::variables_map& given, const char* name) {
  if (given.count(name) == 0) return std::nullopt;
  return given[name].as<T>();
}

void require(bool good, const char* option, const char* what) {
  if (!good) throw UserError(fmt::format("--{} {}", option, what), kSeeHelp);
}

// Each of these options does one thing instead of training. If two were given, one would be ignored silently.
void require_one_task(const po::variables_map& given) {
  std::vector<std::string> tasks;
  for (const char* name : {"check", "probe", "measure-machine", "measure-rates"}) {
    if (given.count(name) > 0) tasks.push_back(fmt::format("--{}", name));
  }
  if (tasks.size() < 2) return;
  throw UserError(fmt::format("{} cannot be combined: each is a task of its own", join(tasks, " and ")),
                  "give one of them at a time");
}

DeviceChoice device_from(const std::string& text) {
  const std::map<std::string, DeviceChoice> known = {
      {"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}};
  const auto found = known.find(text);
  if (found == known.end()) throw UserError(fmt::format("--device '{}' is not known", text), "use auto, cpu or cuda");
  return found->second;
}

workload::Precision precision_from(const std::string& text) {
  for (const workload::Precision precision :
       {workload::Precision::kFp32, workload::Precision::kFp16, workload::Precision::kBf16}) {
    if (text == workload::to_string(precision)) return precision;
  }
  throw UserError(fmt::format("--precision '{}' is not known", text), "use fp32, fp16 or bf16");
}

}  // namespace

BenchOptions parse_options(const std::vector<std::string>& arguments) {
  const po::variables_map given = parse(arguments);
  require_one_task(given);
  BenchOptions options;
  options.help = given.count("help") > 0;
  options.version = given.count("version") > 0;
  options.check = given.count("check") > 0;
  options.probe = given.count("probe") > 0;
  options.measure_rates = given.count("measure-rates") > 0;
  options.json = given.count("json") > 0;
  options.config = find<std::string>(given, "config").value_or("");
  options.measure.steps = find<std::int64_t>(given, "steps");
  options.measure.warmup_s = find<double>(given, "warmup-s").value_or(options.measure.warmup_s);
  options.measure.measure_s = find<double>(given, "measure-s").value_or(options.measure.measure_s);
  options.memory_limit_gib = find<double>(given, "memory-limit");
  options.device = device_from(find<std::string>(given, "device").value_or("auto"));
  options.seed = find<std::uint64_t>(given, "seed").value_or(options.seed);
  options.heartbeat = find<std::string>(given, "heartbeat").value_or("");
  options.hang_s = find<double>(given, "hang-s").value_or(options.hang_s);
  require(options.hang_s > 0.0, "hang-s", "must be above 0");
  options.trace = find<std::string>(given, "trace").value_or("");
  options.graph = given.count("cuda-graph") > 0;
  options.compare_null = given.count("compare-null") > 0;
  options.measure_machine = find<std::int64_t>(given, "measure-machine");
  options.precision = precision_from(find<std::string>(given, "precision").value_or("fp32"));
  constexpr std::int64_t kMostRanks = 256;
  require(!options.measure_machine || (*options.measure_machine >= 1 && *options.measure_machine <= kMostRanks),
          "measure-machine", "must be from 1 to 256");
  constexpr double kMostGib = 1e6;
  require(!options.measure.steps || *options.measure.steps >= 1, "steps", "must be 1 or more");
  require(options.measure.warmup_s >= 0.0 && std::isfinite(options.measure.warmup_s), "warmup-s",
          "must be a finite number of 0 or more");
  require(options.measure.measure_s > 0.0 && std::isfinite(options.measure.measure_s), "measure-s",
          "must be a finite number above 0");
  require(!options.memory_limit_gib || (*options.memory_limit_gib > 0.0 && *options.memory_limit_gib <= kMostGib),
          "memory-limit", "must be above 0 and at most 1e6");
  const bool trains =
      !options.help && !options.version && !options.probe && !options.measure_machine && !options.measure_rates;
  require(!trains || !options.config.empty(), "config", "is required");
  return options;
}

std::string help_text() {
  std::ostringstream text;
  text << kCall << ":\n" << kSummary << ".\n\n" << declare() << "\n" << kExitCodes << "\n" << kProcesses;
  return text.str();
}

manual::Page manual_page() {
  manual::Section options{"OPTIONS"};
  const po::options_description declared = declare();
  for (const auto& option : declared.options()) {
    options.items.push_back(
        {manual::option_term('\0', option->long_name(), option->format_parameter()), option->description()});
  }
  return {"krigtune-bench",
          kSummary,
          kCall,
          {{"DESCRIPTION", kProcesses}, options, {"EXIT STATUS", kExitCodes}},
          {"krigtune", "krigtune-doctor"}};
}

namespace {

// Each rank is a few threads of this process.
void check_cpu_ranks(const JsonObject& object, const workload::ClusterSpec& cluster) {
  constexpr std::int64_t kMostRanks = 256;
  if (cluster.device || cluster.ranks() <= kMostRanks) return;
  object.fail("cluster", "has " + counted(cluster.ranks(), "rank"),
              fmt::format("on CPUs there can be at most {}", kMostRanks));
}

workload::ClusterSpec read_cluster_of(JsonObject& object, const std::filesystem::path& path) {
  const Json* cluster = object.find("cluster");
  return workload::read_cluster(cluster == nullptr ? Json("local") : *cluster, object.source(),
                                object.pointer("cluster"), path.parent_path());
}

}  // namespace

TrainingJob load_job(const std::filesystem::path& path) {
  const Json document = load_json(path);
  JsonObject object(document, path.string(), "");
  TrainingJob job;
  job.workload = workload::read_workload(object.require("workload"), object.source(), object.pointer("workload"),
                                         path.parent_path());
  job.cluster = read_cluster_of(object, path);
  if (const Json* memory = object.find("memory")) {
    job.memory = workload::read_memory(*memory, object.source(), object.pointer("memory"));
  }
  if (const Json* configuration = object.find("configuration")) {
    job.configuration =
        space::configuration_from_json(*configuration, object.source(), object.pointer("configuration"));
  }
  object.finish();
  check_cpu_ranks(object, job.cluster);
  return job;
}

void check_trained(const TrainingJob& job) {
  for (const std::string part :
       {job.workload.model.predicted_only(), workload::training_predicted_only(job.workload)}) {
    if (part.empty()) continue;
    throw UserError(fmt::format("/workload: krigtune-bench does not train {}, which can only be predicted", part),
                    "leave that out; --check checks the plan");
  }
}

workload::ClusterSpec cluster_of(const BenchOptions& options) {
  if (!options.config.empty()) {
    if (!options.measure_rates) return load_job(options.config).cluster;
    const Json document = load_json(options.config);
    JsonObject object(document, options.config.string(), "");
    workload::ClusterSpec cluster = read_cluster_of(object, options.config);
    check_cpu_ranks(object, cluster);
    return cluster;
  }
  workload::ClusterSpec cluster;
  const engine::GpuProbe probe = engine::probe_gpus();
  if (options.device != DeviceChoice::kCpu && probe.gpus > 0) cluster.gpus_per_node = probe.gpus;
  return cluster;
}

}  // namespace krigtune::bench
