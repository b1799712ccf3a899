// A bench trial runs krigtune-bench in processes of its own and keeps its inputs and output in the trial's directory.
// If no step completes for --hang-s, krigtune-bench ends itself; if even that fails, its heartbeats stop growing, and
// this code ends all its processes. It also ends them when the heartbeats show that the trial is certainly worse than
// the best so far.
#include "runner/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/secret.h"
#include "core/text.h"
#include "trial/program.h"
#include "trial/trial_files.h"

namespace krigtune::runner {
namespace {

constexpr const char* kStepTime = "step_time_s";

// All of these are an amount divided by the step time.
constexpr std::array kPerStep = {"samples_per_s", "tokens_per_s", "flops_per_s"};

// Fields that describe the document or repeat its inputs, so they are not results.
constexpr std::array kEchoed = {"schema_version", "seed", "configuration", "workload", "cluster"};

bool is_rate(const std::string& field) { return std::find(kPerStep.begin(), kPerStep.end(), field) != kPerStep.end(); }

void flatten_metrics(const Json& json, const std::string& prefix, std::map<std::string, double>& metrics) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = prefix.empty() ? key : prefix + "_" + key;
    if (value.is_object()) flatten_metrics(value, name, metrics);
    if (value.is_number()) metrics[name] = value.get<double>();
  }
}

std::optional<Bytes> bytes_field(const std::optional<Json>& document, const char* name) {
  if (!document || !document->contains(name) || !(*document)[name].is_number()) return std::nullopt;
  return Bytes{(*document)[name].get<std::int64_t>()};
}

trial::Failed failed(trial::FailureReason reason, const BenchEnd& end, const std::string& what = "") {
  std::string lines = what;
  if (!what.empty() && !end.last_lines.empty()) lines += "\n";
  return {reason, end.process.exit_code, lines + end.last_lines};
}

// Returns what is wrong with the numbers, or "".
std::string complaint(const std::map<std::string, double>& metrics, const std::string& metric_field) {
  for (const std::string& name : {metric_field, std::string("step_time_s")}) {
    const auto found = metrics.find(name);
    if (found == metrics.end()) return fmt::format("the result has no number '{}'", name);
    const bool positive = name == "step_time_s" || is_rate(name);
    const bool good = positive ? found->second > 0.0 : found->second >= 0.0;
    if (!good || !std::isfinite(found->second)) {
      return fmt::format("the result's '{}' is {}", name, found->second);
    }
  }
  for (const char* name : {"step_time_sem_s", "arena_peak_bytes"}) {
    const auto found = metrics.find(name);
    if (found != metrics.end() && !(found->second >= 0.0 && std::isfinite(found->second))) {
      return fmt::format("the result's '{}' is {}", name, found->second);
    }
  }
  return "";
}

// The standard error of f(t) = c / t by the delta method: |f'(t)| sem_t = f sem_t / t.
double objective_sem(const std::map<std::string, double>& metrics, const std::string& metric_field) {
  const auto sem = metrics.find("step_time_sem_s");
  if (sem == metrics.end()) return 0.0;
  if (metric_field == "step_time_s") return sem->second;
  if (!is_rate(metric_field)) return 0.0;
  return metrics.at(metric_field) * sem->second / metrics.at("step_time_s");
}

trial::Outcome measured_from_document(const BenchEnd& end, const std::string& metric_field) {
  if (!end.document) return failed(trial::FailureReason::kBadResult, end, "its standard output is not a JSON document");
  const Json& document = *end.document;
  const std::string status = document.contains("status") && document["status"].is_string() ? document["status"] : "";
  if (status != "ok") {
    return failed(trial::FailureReason::kBadResult, end,
                  fmt::format("exit code 0, but the result's status is '{}'", status));
  }
  trial::Measured outcome;
  outcome.metrics = bench_metrics(document);
  const std::string wrong = complaint(outcome.metrics, metric_field);
  if (!wrong.empty()) return failed(trial::FailureReason::kBadResult, end, wrong);
  outcome.value_sem = objective_sem(outcome.metrics, metric_field);
  outcome.peak_memory = bytes_field(end.document, "arena_peak_bytes");
  return outcome;
}

std::string signal_message(int number) {
  std::string text = fmt::format("ended by signal {} ({})", number, ::strsignal(number));
  if (number == SIGKILL) text += "; the system does this when the machine's memory is exhausted";
  return text;
}

// The outcome of a program that ended by itself.
trial::Outcome outcome_of_exit(const BenchEnd& end, const std::string& metric_field) {
  switch (end.process.exit_code) {
    case BenchExit::kOk:
      return measured_from_document(end, metric_field);
    // If the trial had a memory limit of its own, the session did not predict this: it expected the configuration to
    // fit, and now learns how much it needs.
    case BenchExit::kPredictedOutOfMemory:
      return trial::OutOfMemory{bytes_field(end.document, "planned_peak_bytes"), end.limit_is_the_sessions};
    case BenchExit::kOutOfMemory:
      return trial::OutOfMemory{bytes_field(end.document, "planned_peak_bytes"), false};
    case BenchExit::kBadInput:
      return failed(trial::FailureReason::kInvalid, end);
    case BenchExit::kHang:
      return failed(trial::FailureReason::kHang, end);
    case BenchExit::kNumericalFailure:
      return failed(trial::FailureReason::kBadResult, end);
    case BenchExit::kEnvironmentLacks:
    case BenchExit::kNoDevice:
      return failed(trial::FailureReason::kEnvironment, end);
    case BenchExit::kCommunication:
    default:
      // mpirun passes on the signal that ended one of its processes.
      return failed(trial::FailureReason::kCrash, end,
                    end.process.exit_code > 128 ? signal_message(end.process.exit_code - 128) : "");
  }
}

}  // namespace

std::optional<Json> bench_document(const std::string& text) {
  Json document = json_or_discarded(text);
  if (!document.is_object()) return std::nullopt;
  return document;
}

std::map<std::string, double> bench_metrics(const Json& document) {
  std::map<std::string, double> metrics;
  Json results = document;
  for (const char* key : kEchoed) results.erase(key);
  flatten_metrics(results, "", metrics);
  return metrics;
}

std::optional<trial::Provisional> provisional_objective(const std::map<std::string, double>& metrics,
                                                        const std::string& metric_field) {
  const bool known = metric_field == kStepTime || is_rate(metric_field);
  const auto steps = metrics.find("steps");
  if (!known || steps == metrics.end() || metrics.count("step_time_sem_s") == 0) return std::nullopt;
  if (!complaint(metrics, metric_field).empty()) return std::nullopt;
  return trial::Provisional{metrics.at(metric_field), objective_sem(metrics, metric_field),
                            static_cast<std::int64_t>(steps->second)};
}

trial::Outcome bench_outcome(const BenchEnd& end, const std::string& metric_field) {
  const trial::ProcessResult& process = end.process;
  if (!process.start_error.empty()) {
    return failed(trial::FailureReason::kEnvironment, end, "krigtune-bench does not start: " + process.start_error);
  }
  if (process.stopped) return failed(trial::FailureReason::kInterrupted, end);
  if (!process.lost.empty()) return failed(trial::FailureReason::kLost, end, process.lost);
  if (process.out_of_memory) return trial::OutOfMemory{bytes_field(end.document, "planned_peak_bytes"), false};
  // A trial that was cut short is bounded, unless it had already ended by itself.
  if (process.cut_short && end.bound && process.exit_code != BenchExit::kOk) return trial::Bounded{*end.bound};
  if (process.timed_out) {
    return failed(trial::FailureReason::kTimeout, end, fmt::format("ended after {:.1f} s", process.wall_s));
  }
  if (process.hung) {
    const std::string last = end.last_heartbeat.empty() ? "none" : end.last_heartbeat;
    return failed(trial::FailureReason::kHang, end,
                  fmt::format("no sign of life; ended after {:.1f} s; last heartbeat: {}", process.wall_s, last));
  }
  if (process.signal != 0) return failed(trial::FailureReason::kCrash, end, signal_message(process.signal));
  return outcome_of_exit(end, metric_field);
}

namespace {

constexpr EnumWords<Launcher, 2> kLauncherWords = {{{"threads", Launcher::kThreads}, {"mpirun", Launcher::kMpirun}}};
constexpr double kSlack = 1.5;  // krigtune-bench should notice first, because it can report more
constexpr std::size_t kHeartbeatBytes = 512;

constexpr const char* kBenchProgram = "krigtune-bench";

std::filesystem::path required_bench(const std::filesystem::path& krigtune) {
  std::filesystem::path bench = find_bench(krigtune);
  if (!bench.empty()) return bench;
  throw EnvironmentError(
      fmt::format("{} is neither in '{}' nor on PATH", kBenchProgram, krigtune.parent_path().string()),
      "build it: ninja krigtune-bench");
}

class BenchRunner final : public trial::Runner {
 public:
  BenchRunner(BenchJob job, const Clock& clock) : job_(std::move(job)), clock_(clock) {}

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    const trial::TrialFiles files(context.dir);
    const std::optional<trial::Rival>& rival = context.rival;
    if (!context.adopted) std::filesystem::remove(heartbeat(files));
    trial::ProcessSpec spec = prepare(configuration, files, context.adopted);
    BenchEnd end;
    end.limit_is_the_sessions = !job_.spec.memory_limit_gib;
    trial::ProgressLines progress(heartbeat(files));
    std::map<std::string, double> provisional;
    if (rival && job_.spec.early_end && rival->metric == job_.metric_field) {
      spec.enough = [&] { return is_lost(*rival, progress, provisional, end); };
    }
    end.process = context.place.run(spec, clock_);
    end.last_lines = trial::last_lines(trial::read_tail(spec.stderr_file, trial::kMostJobFileBytes));
    end.last_heartbeat = last_line(trial::read_tail(heartbeat(files), kHeartbeatBytes));
    end.document = bench_document(trial::read_tail(spec.stdout_file, trial::kMostJobFileBytes));
    trial::write_exit(files, end.process, context.place.where());
    trial::Outcome outcome = bench_outcome(end, job_.metric_field);
    if (std::holds_alternative<trial::Bounded>(outcome)) end.document = bounded_document(provisional);
    if (end.document) write_if_possible(files.result(), end.document->dump(2) + "\n");
    return outcome;
  }

 private:
  // Sets the bound as soon as the trial has lost.
  bool is_lost(const trial::Rival& rival, trial::ProgressLines& progress, std::map<std::string, double>& provisional,
               BenchEnd& end) const {
    const auto line = progress.next("step_time_s");
    if (!line) return false;
    const std::optional<trial::Provisional> now = provisional_objective(*line, job_.metric_field);
    if (!now) return false;
    provisional = *line;
    end.bound = trial::bound_of_a_loser(*now, rival);
    return end.bound.has_value();
  }

  // Returns the values that were known when the trial was ended.
  static Json bounded_document(const std::map<std::string, double>& provisional) {
    Json document = {{"schema_version", 1}, {"status", "bounded"}, {"reason", "surely worse than the best"}};
    for (const auto& [name, value] : provisional) document[name] = json_number(value);
    return document;
  }

  trial::ProcessSpec prepare(const space::Configuration& configuration, const trial::TrialFiles& files,
                             bool adopted) const {
    const Json config = bench_config(job_.workload, job_.cluster, job_.memory, configuration);
    const BenchSpec& bench = job_.spec;
    trial::ProcessSpec spec;
    if (bench.launcher == Launcher::kMpirun) spec.environment = mpirun_environment();
    spec.argv = bench.words(job_.program, files.config(), job_.cluster.ranks(),
                            {"--heartbeat", heartbeat(files).string(), "--hang-s", number_text(bench.hang_s)});
    // The token connects the ranks of this trial and keeps other processes out.
    spec.environment.emplace_back(kTokenVariable, new_token());
    trial::write_inputs(files, config, spec, adopted);
    spec.timeout_s = bench.timeout_s;
    spec.stop = job_.stop;
    spec.no_progress_s = kSlack * bench.hang_s;
    spec.progress_files = {heartbeat(files)};
    return spec;
  }

  static std::filesystem::path heartbeat(const trial::TrialFiles& files) { return files.dir / "heartbeat.jsonl"; }

  static std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return "";
    const std::size_t before = text.rfind('\n', end);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, end + 1 - begin);
  }

  // Variables configure Open MPI, so the command also works with the mpirun of another MPI.
  static trial::Environment mpirun_environment() {
    return {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},      // there may be more ranks than cores
            {"OMPI_MCA_hwloc_base_binding_policy", "none"},  // a rank has several threads
            {"OMPI_ALLOW_RUN_AS_ROOT", "1"},                 // in a container root is the only user
            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  }

  BenchJob job_;
  const Clock& clock_;
};

// A long timeout suggests long steps.
double hang_s_of(const BenchSpec& bench) {
  constexpr double kLeastHangS = 60.0;
  constexpr double kStepsInATimeout = 5.0;
  return std::max(kLeastHangS, bench.timeout_s / kStepsInATimeout);
}

Block<BenchSpec> bench_block(const std::filesystem::path& /*base_dir*/) {
  Block<BenchSpec> block("krigtune-bench, one process for each trial");
  block.key("warmup_s", &BenchSpec::warmup_s, number(at_least(0)), "warm-up in seconds");
  block.key("measure_s", &BenchSpec::measure_s, number(above(0)), "length of the measurement in seconds");
  block.key("timeout_s", &BenchSpec::timeout_s, number(above(0)), "time limit of a trial in seconds");
  block
      .key("launcher", &BenchSpec::launcher, one_of(kLauncherWords),
           "ranks as threads of one process, or as processes under mpirun")
      .written_where_changed();
  block.key("early_end", &BenchSpec::early_end, boolean(),
            "end a trial early once its steps show that it is worse than the best (status bounded)");
  block.key("memory_limit_gib", &BenchSpec::memory_limit_gib, number_or_null(above(0)),
            "memory limit of a rank that krigtune-bench enforces, in GiB (default: the session's limit)");
  block.check([](JsonObject& object, BenchSpec& bench) {
    const double measured_s = bench.warmup_s + bench.measure_s;
    if (bench.timeout_s <= measured_s) {
      object.fail("timeout_s",
                  fmt::format("{} s end before warm-up and measurement ({} s)", bench.timeout_s, measured_s),
                  "raise it");
    }
    bench.hang_s = hang_s_of(bench);
  });
  return block;
}

}  // namespace

std::optional<std::vector<std::string>> BenchSpec::measured_names() const {
  return std::vector<std::string>{"process_peak_bytes", "loss_last"};
}

std::vector<std::string> BenchSpec::words(const std::filesystem::path& program, const std::filesystem::path& config,
                                          std::int64_t ranks, const std::vector<std::string>& more) const {
  std::vector<std::string> words;
  if (launcher == Launcher::kMpirun) words = {"mpirun", "-np", std::to_string(ranks)};
  words.insert(words.end(), {program.string(), "--config", config.string(), "--json", "--warmup-s",
                             number_text(warmup_s), "--measure-s", number_text(measure_s)});
  words.insert(words.end(), more.begin(), more.end());
  if (memory_limit_gib) words.insert(words.end(), {"--memory-limit", number_text(*memory_limit_gib)});
  return words;
}

Json bench_config(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                  const workload::MemorySpec& memory, const space::Configuration& configuration) {
  return {{"workload", workload::to_json(workload)},
          {"cluster", workload::to_json(cluster)},
          {"memory", workload::to_json(memory)},
          {"configuration", space::to_json(configuration)}};
}

trial::RunnerEntry<BenchSpec> BenchSpec::entry() {
  return {{.name = "bench",
           .runs_programs = true,
           .only_what_is_modelled = true,
           .trains_our_step = true,
           .has_our_fields = true,
           .words = {.trainer = "krigtune-bench"}},
          bench_block,
          [](const BenchSpec& spec, const trial::RunnerJob& job) {
            return make_bench_runner(
                {required_bench(job.program), job.workload.value(), job.cluster, job.memory, spec, job.field, job.stop},
                job.clock);
          }};
}

std::filesystem::path find_bench(const std::filesystem::path& krigtune) {
  const std::filesystem::path directory = krigtune.parent_path();
  std::filesystem::path beside = find_program(kBenchProgram, {}, directory.string());
  return beside.empty() ? find_program(kBenchProgram, {}, program_search_path()) : beside;
}

std::unique_ptr<trial::Runner> make_bench_runner(BenchJob job, const Clock& clock) {
  return std::make_unique<BenchRunner>(std::move(job), clock);
}

}  // namespace krigtune::runner
