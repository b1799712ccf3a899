// A trial of a DeepSpeed job runs the user's command with the trial's own ds_config.json. Its steps are read as they
// appear: to end a trial that has lost, for the watchdog, and because the time at which a row was written is the only
// trace of time that the engine does not count.
#include "deepspeed/job/deepspeed_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_losses.h"
#include "deepspeed/job/ds_outcome.h"
#include "deepspeed/job/ds_probe.h"
#include "deepspeed/job/ds_trial.h"
#include "trial/process.h"
#include "trial/program.h"
#include "trial/race.h"
#include "trial/trial_files.h"

namespace krigtune::deepspeed {
namespace {

constexpr const char* kDeviceMemoryUsed = "device_memory_used_bytes";

// The input of a trial.
struct Prepared {
  DsTrialFiles files;
  Json ds_config;
  trial::ProcessSpec process;
};

// The standard error by the delta method: a rate has the relative error of its time.
double sem_of(double value, const DsEstimate& found) { return value * found.step_time_sem_s / found.step_time_s; }

class DeepSpeedRunner final : public trial::Runner {
 public:
  DeepSpeedRunner(DeepSpeedJob job, const Clock& clock)
      : job_(std::move(job)),
        clock_(clock),
        command_(read_ds_command(job_.spec.argv)),
        mappings_(flag_mappings(command_, job_.spec.arg_mappings)),
        source_(job_.spec.ds_config.string()),
        ds_config_(begun_ds_config(job_.spec)) {
    job_.ranks.sharing = command_.sequence_ranks;
    trial::refuse_missing_program(command_.argv.front(), job_.spec.working_directory, job_.spec.environment);
    trial::refuse_missing_script(command_.argv, job_.spec.working_directory);
  }

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    const std::optional<trial::Rival>& rival = context.rival;
    Prepared trial{DsTrialFiles(context.dir), {}, {}};
    try {
      prepare(configuration, context, trial);
    } catch (const UserError& error) {  // only this configuration is refused; the next one may work
      return trial::Failed{trial::FailureReason::kInvalid, 0, error.what()};
    }
    TrialSteps steps(trial.files, trial.ds_config, job_);
    std::optional<double> bound;
    DeviceMemory memory(trial.files.dir, job_.spec.environment, clock_);
    trial.process.enough = [&] {
      if (!steps.look()) return false;
      if (memory.wants_a_look(steps.count()) && !says_memory(trial.process)) memory.look();
      if (!rival || !job_.spec.early_end || rival->metric != job_.metric) return false;
      bound = bound_now(steps, *rival);
      return bound.has_value();
    };
    const std::optional<std::int64_t> kills_before = trial::oom_kills_now();
    const trial::ProcessResult process = context.place.run(trial.process, clock_);
    const std::optional<std::int64_t> kills_after = trial::oom_kills_now();
    DsEnd end = end_of(process, trial.process);
    const bool is_here = !context.place.facts().is_elsewhere;
    if (is_here && kills_before && kills_after) end.oom_kills = *kills_after - *kills_before;
    steps.finish(end.standard_output);
    end.steps = steps.count();
    trial::write_exit(trial::TrialFiles(context.dir), process, context.place.where());
    return finish(process, end, steps, {bound, memory.growth()}, trial.files);
  }

 private:
  // Removes the files of an earlier run of the same trial, because DeepSpeed appends to them.
  static void remove_old(const DsTrialFiles& files) {
    std::error_code ignored;
    for (const auto& old : {files.monitor(), files.metrics(), trial::TrialFiles(files.dir).result()})
      std::filesystem::remove_all(old, ignored);
  }

  void prepare(const space::Configuration& configuration, const trial::RunContext& context, Prepared& trial) const {
    const DsTrialFiles& files = trial.files;
    if (!context.adopted) remove_old(files);
    const space::Configuration chosen =
        at_the_flags_batch(configuration, command_, mappings_, ds_config_, job_.ranks, source_);
    trial.ds_config = with_measurement(with_values(ds_config_, chosen, DsUse::kTrial, job_.ranks, source_), files,
                                       job_.spec.steps, job_.version);
    if (!context.adopted) write_atomically(files.ds_config(), ds_config_text(trial.ds_config));
    trial::ProcessSpec& process = trial.process;
    const bool as_text = job_.spec.config_as == DsConfigAs::kBase64;
    const std::string config = as_text ? ds_config_base64(trial.ds_config) : files.ds_config().string();
    process.argv =
        started_at(rewritten(command_, config, with_batch(ds_config_, chosen, job_.ranks, source_), mappings_),
                   command_, context.place.facts());
    process.timeout_s = job_.spec.timeout_s;
    process.grace_s = job_.spec.grace_s;
    process.stop = job_.stop;
    process.working_directory = job_.spec.working_directory;
    process.environment = job_.spec.environment;
    trial::unbuffer_python(process.environment);
    process.no_progress_s = job_.spec.no_progress_s;
    process.progress_files = {files.metrics(), files.times("forward"), files.times("backward"), files.times("step")};
    trial::write_inputs(trial::TrialFiles(files.dir), space::to_json(configuration), process, context.adopted);
  }

  DsEnd end_of(const trial::ProcessResult& process, const trial::ProcessSpec& spec) const {
    DsEnd end;
    end.exit_code = process.exit_code;
    end.timed_out = process.timed_out;
    end.hung = process.hung;
    end.wall_s = process.wall_s;
    end.steps_due = job_.spec.steps.due();
    end.argv = spec.argv;
    end.users_command = command_.argv;
    end.standard_output = trial::read_tail(spec.stdout_file, trial::kMostJobFileBytes);
    end.standard_error = trial::read_tail(spec.stderr_file, trial::kMostJobFileBytes);
    return end;
  }

  static bool says_memory(const trial::ProcessSpec& spec) {
    return peak_memory_in(trial::read_tail(spec.stdout_file, trial::kMostJobFileBytes)).has_value();
  }

  std::optional<double> bound_now(const TrialSteps& steps, const trial::Rival& rival) const {
    const auto found = steps.estimate_now();
    if (!found) return std::nullopt;
    const auto metrics = steps.metrics(*found);
    const auto value = metrics.find(job_.metric);
    if (value == metrics.end()) return std::nullopt;
    return trial::bound_of_a_loser({value->second, sem_of(value->second, *found), found->steps}, rival);
  }

  // Observations while the trial ran.
  struct Seen {
    std::optional<double> bound;         ///< set if the trial has lost
    std::optional<Bytes> device_memory;  ///< increase on a GPU
  };

  trial::Outcome finish(const trial::ProcessResult& process, const DsEnd& end, const TrialSteps& steps,
                        const Seen& seen, const DsTrialFiles& files) const {
    if (!process.start_error.empty()) {
      return trial::Failed{trial::FailureReason::kEnvironment, 0,
                           fmt::format("'{}' does not start: {}", command_.argv.front(), process.start_error)};
    }
    if (process.stopped) return trial::Failed{trial::FailureReason::kInterrupted, process.exit_code, ""};
    if (!process.lost.empty()) return trial::Failed{trial::FailureReason::kLost, process.exit_code, process.lost};
    DsVerdict verdict = judge(end);
    const auto found = steps.estimate_now();
    Json result = {{"status", "failed"}, {"class", to_string(verdict.what)}, {"sentence", verdict.sentence}};
    trial::Outcome outcome;
    if (verdict.what == DsClass::kSuccess) {
      outcome = measured(process, end, steps, found, seen);
    } else if (process.cut_short && seen.bound) {
      outcome = trial::Bounded{*seen.bound};
      result["class"] = "ended early";
      result["sentence"] = fmt::format("surely worse than the best after {} of {} steps", end.steps, end.steps_due);
    } else if (process.out_of_memory) {
      outcome = trial::OutOfMemory{};
      result["class"] = "out of memory";
    } else {
      outcome = outcome_of(verdict, end);
    }
    result["status"] = trial::status_text(outcome);
    if (found) {
      for (const auto& [name, value] : steps.metrics(*found)) result[name] = json_number(value);
    }
    if (const auto* ok = std::get_if<trial::Measured>(&outcome)) {
      if (ok->peak_memory) result["peak_memory_bytes"] = ok->peak_memory->count;
      const auto used = ok->metrics.find(kDeviceMemoryUsed);
      if (used != ok->metrics.end()) result[kDeviceMemoryUsed] = json_number(used->second);
    }
    write_losses(losses_of(end, files), result);
    write_if_possible(trial::TrialFiles(files.dir).result(),
                      result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return outcome;
  }

  // Progress bars go to stderr, and some engines write losses that the script does not print.
  DsLosses losses_of(const DsEnd& end, const DsTrialFiles& files) const {
    const trial::TrialFiles plain(files.dir);
    DsLosses losses;
    for (const std::filesystem::path& output : {plain.standard_output(), plain.standard_error()}) {
      if (losses.values.empty())
        losses = losses_in(trial::read_head(output, trial::kMostJobFileBytes), end.steps, end.steps_due);
    }
    if (losses.values.empty()) losses = losses_in_monitor(files.engine_losses(), end.steps_due);
    return losses;
  }

  trial::Outcome measured(const trial::ProcessResult& process, const DsEnd& end, const TrialSteps& steps,
                          const std::optional<DsEstimate>& found, const Seen& seen) const {
    trial::Measured outcome;
    if (found) outcome.metrics = steps.metrics(*found);
    const auto value = outcome.metrics.find(job_.metric);
    if (value == outcome.metrics.end()) {
      std::vector<std::string> names;
      for (const auto& [name, number] : outcome.metrics) names.push_back(name);
      return trial::Failed{
          trial::FailureReason::kBadResult, end.exit_code,
          fmt::format("a trial of a DeepSpeed job has no number '{}'; it has {}", job_.metric, join(names, ", "))};
    }
    outcome.value_sem = sem_of(value->second, *found);
    outcome.peak_memory = peak_memory_in(end.standard_output + end.standard_error);
    if (!outcome.peak_memory && seen.device_memory) {
      // This is not the peak of the tensors, so memory plans cannot be compared with it.
      outcome.metrics.emplace(kDeviceMemoryUsed, static_cast<double>(seen.device_memory->count));
    }
    if (process.peak_rss_bytes > 0)  // not counted on other machines
      outcome.metrics.emplace("peak_rss_bytes", static_cast<double>(process.peak_rss_bytes));
    return outcome;
  }

  DeepSpeedJob job_;
  const Clock& clock_;
  DsCommand command_;
  std::vector<FlagMapping> mappings_;
  std::string source_;
  Json ds_config_;
};

}  // namespace

std::unique_ptr<trial::Runner> make_deepspeed_runner(DeepSpeedJob job, const Clock& clock) {
  return std::make_unique<DeepSpeedRunner>(std::move(job), clock);
}

std::vector<Bytes> used_memory_in(const std::string& output) {
  constexpr std::int64_t kMiB = 1 << 20;
  constexpr std::int64_t kMostMiB = 1 << 30;  // a pebibyte; no memory is larger
  std::vector<Bytes> used;
  for (std::string_view rest = output; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) continue;
    std::int64_t mib = 0;
    const auto [last, error] = std::from_chars(line.data(), line.data() + line.size(), mib);
    const bool is_alone = line.find_first_not_of("0123456789 \r") == std::string_view::npos;
    if (error != std::errc() || !is_alone || mib < 0 || mib > kMostMiB) return {};
    used.push_back(Bytes{mib * kMiB});
  }
  return used;
}

DeviceMemory::DeviceMemory(std::filesystem::path directory,
                           std::vector<std::pair<std::string, std::string>> environment, const Clock& clock)
    : directory_(std::move(directory)),
      environment_(std::move(environment)),
      clock_(clock),
      before_(now()),
      most_(before_) {}

bool DeviceMemory::wants_a_look(std::int64_t steps) {
  if (before_.empty() || steps < next_look_) return false;
  while (next_look_ <= steps) next_look_ *= 2;
  return true;
}

void DeviceMemory::look() {
  const std::vector<Bytes> used = now();
  if (used.size() != most_.size()) return;
  for (std::size_t gpu = 0; gpu < used.size(); ++gpu) most_[gpu] = std::max(most_[gpu], used[gpu]);
}

std::optional<Bytes> DeviceMemory::growth() const {
  Bytes most{0};
  for (std::size_t gpu = 0; gpu < most_.size(); ++gpu)
    most = std::max(most, Bytes{most_[gpu].count - before_[gpu].count});
  return most.count > 0 ? std::optional(most) : std::nullopt;
}

// Empty if nvidia-smi or the driver is missing, or if there is no answer in time.
std::vector<Bytes> DeviceMemory::now() const {
  constexpr double kPatienceS = 5.0;
  constexpr std::size_t kMost = 1 << 16;
  trial::ProcessSpec spec;
  spec.argv = {"nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"};
  spec.stdout_file = directory_ / "nvidia_smi.out";
  spec.stderr_file = directory_ / "nvidia_smi.err";
  spec.timeout_s = kPatienceS;
  spec.environment = environment_;
  const trial::ProcessResult result = trial::run_process(spec, clock_);
  const std::string output = trial::read_head(spec.stdout_file, kMost);
  std::error_code ignored;
  std::filesystem::remove(spec.stdout_file, ignored);
  std::filesystem::remove(spec.stderr_file, ignored);
  return result.start_error.empty() && result.exit_code == 0 ? used_memory_in(output) : std::vector<Bytes>();
}

// The session's block of the runner "deepspeed":
namespace {

constexpr EnumWords<DsConfigAs, 2> kConfigAsWords = {{{"path", DsConfigAs::kPath}, {"base64", DsConfigAs::kBase64}}};

// Returns the file that the command names, relative to the command's directory, unless the session names another one.
std::filesystem::path config_path(const JsonObject& block, const DeepSpeedSpec& spec,
                                  const std::filesystem::path& base_dir) {
  const std::string own = spec.ds_config.string();
  trial::refuse_zero_byte(block, "ds_config", own);
  try {
    const DsCommand command = read_ds_command(spec.argv);
    flag_mappings(command, spec.arg_mappings);
    const std::filesystem::path path = own.empty() ? spec.working_directory / command.config : base_dir / own;
    return std::filesystem::absolute(path).lexically_normal();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}: {}", block.source(), block.pointer("argv"), error.what()));
  }
}

void read_mappings(JsonObject& block, DeepSpeedSpec& spec) {
  if (block.find("arg_mappings") == nullptr) return;
  const JsonObject mappings = block.object("arg_mappings");
  for (const auto& [key, flag] : mappings.value().items()) {
    if (!flag.is_string() || flag.get<std::string>().empty()) {
      mappings.fail(key, "a flag of the script was expected", R"(write "--per_device_train_batch_size")");
    }
    spec.arg_mappings.emplace_back(key, flag.get<std::string>());
  }
}

Block<DeepSpeedSpec> deepspeed_block(const std::filesystem::path& base_dir) {
  constexpr double kMostSteps = 1e5;
  constexpr double kLeastMeasured = 3.0;  // a standard error of fewer steps is a guess
  Block<DeepSpeedSpec> block("A DeepSpeed job of yours, launched for each trial with a ds_config.json of its own");
  block
      .key("argv", &DeepSpeedSpec::argv,
           trial::command_words(R"(["deepspeed", "train.py", "--deepspeed_config", "ds_config.json"])"),
           "the command as you type it, with --deepspeed FILE or --deepspeed_config FILE; no shell")
      .required();
  block.custom(
      "ds_config", schema::text(),
      "your ds_config.json, relative to the session (default: the file that the command names)",
      [](JsonObject& object, DeepSpeedSpec& spec) { spec.ds_config = object.text("ds_config", ""); },
      [](const DeepSpeedSpec& spec) { return Json(spec.ds_config.string()); });
  trial::add_surroundings(block, base_dir);
  block.key("config_as", &DeepSpeedSpec::config_as, one_of(kConfigAsWords),
            "how the command gets a trial's configuration: as the path of a file, or as base64 text for nodes that "
            "share no file system; not if the script opens the file itself");
  block.key(
      "warmup_steps", [](auto& spec) -> auto& { return spec.steps.warmup; }, integer(from_to(1, kMostSteps)),
      "optimizer steps before the measurement");
  block.key(
      "measure_steps", [](auto& spec) -> auto& { return spec.steps.measured; },
      integer(from_to(kLeastMeasured, kMostSteps)), "optimizer steps that are measured");
  block.key("timeout_s", &DeepSpeedSpec::timeout_s, trial::time_limit(), "time limit of a trial in seconds");
  block.key("grace_s", &DeepSpeedSpec::grace_s, trial::grace(), "seconds between SIGTERM and SIGKILL");
  block.key("no_progress_s", &DeepSpeedSpec::no_progress_s, trial::time_limit(),
            "seconds without a sign of progress after which a trial counts as hung");
  block.key("early_end", &DeepSpeedSpec::early_end, boolean(),
            "end a trial early once its steps show that it is worse than the best (status bounded)");
  block.custom("arg_mappings", schema::map(schema::text("the flag")),
               "flags of the script that must agree with the file: key of ds_config.json -> flag", read_mappings,
               [](const DeepSpeedSpec& spec) { return trial::environment_json(spec.arg_mappings); });
  block.check(
      [base_dir](JsonObject& object, DeepSpeedSpec& spec) { spec.ds_config = config_path(object, spec, base_dir); });
  return block;
}

}  // namespace

trial::RunnerEntry<DeepSpeedSpec> DeepSpeedSpec::entry() {
  return {{.name = "deepspeed",
           .runs_programs = true,
           .reads_config = false,
           .result_has_sentence = true,
           .has_our_fields = true,
           .takes_all_ranks = true,
           .words = {.after_bad_result = "let the script train longer, or lower /runner/measure_steps of the session"}},
          deepspeed_block,
          [](const DeepSpeedSpec& spec, const trial::RunnerJob& job) {
            const DsCommand command = read_ds_command(spec.argv);
            return make_deepspeed_runner(
                {spec, job.field, job.cluster.ranks(), job.workload ? job.workload->model.seq_len : 0, job.stop,
                 installed_version(command, spec.working_directory, job.clock)},
                job.clock);
          }};
}

}  // namespace krigtune::deepspeed
