// A trial of a DeepSpeed job: the user's command with the trial's own ds_config.json. Steps are read while they come
// in: for the end of a trial that has lost, for the watchdog, and because the time at which a row was written is the
// only trace of what the engine does not count.
#include "krigtune/runner/deepspeed/deepspeed_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_memory.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "krigtune/runner/deepspeed/ds_begun.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/runner/deepspeed/ds_losses.h"
#include "krigtune/runner/deepspeed/ds_outcome.h"
#include "krigtune/runner/deepspeed/ds_trial.h"
#include "program.h"
#include "race.h"
#include "trial_files.h"
#include "trial_steps.h"

namespace krigtune {
namespace {

constexpr const char* kDeviceMemoryUsed = "device_memory_used_bytes";

// What is given to a trial.
struct Prepared {
  DsTrialFiles files;
  Json ds_config;
  ProcessSpec process;
};

// By the delta method; a rate has the relative error of its time.
double sem_of(double value, const DsEstimate& found) { return value * found.step_time_sem_s / found.step_time_s; }

class DeepSpeedRunner final : public Runner {
 public:
  DeepSpeedRunner(DeepSpeedJob job, const Clock& clock)
      : job_(std::move(job)),
        clock_(clock),
        command_(read_ds_command(job_.spec.argv)),
        mappings_(flag_mappings(command_, job_.spec.arg_mappings)),
        source_(job_.spec.ds_config.string()),
        ds_config_(begun_ds_config(job_.spec)) {
    refuse_missing_program(command_.argv.front(), job_.spec.working_directory, job_.spec.environment);
  }

  Outcome run(const Configuration& configuration, const std::filesystem::path& trial_dir,
              const std::optional<Rival>& rival) override {
    Prepared trial{DsTrialFiles(trial_dir), {}, {}};
    try {
      prepare(configuration, trial);
    } catch (const UserError& error) {  // of this configuration: the next one may do
      return Failed{FailureReason::kInvalid, 0, error.what()};
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
    const std::optional<std::int64_t> kills_before = oom_kills_now();
    const ProcessResult process = run_process(trial.process, clock_);
    const std::optional<std::int64_t> kills_after = oom_kills_now();
    DsEnd end = end_of(process, trial.process);
    if (kills_before && kills_after) end.oom_kills = *kills_after - *kills_before;
    steps.finish(end.standard_output);
    end.steps = steps.count();
    write_exit(TrialFiles(trial_dir), process);
    return finish(process, end, steps, {bound, memory.growth()}, trial.files);
  }

 private:
  void prepare(const Configuration& configuration, Prepared& trial) const {
    const DsTrialFiles& files = trial.files;
    const TrialFiles plain(files.dir);
    std::error_code ignored;
    for (const auto& old : {files.monitor(), files.metrics(), plain.result()}) {
      std::filesystem::remove_all(old, ignored);  // of an earlier run of the same trial: DeepSpeed appends
    }
    const Configuration chosen =
        at_the_flags_batch(configuration, command_, mappings_, ds_config_, job_.ranks, source_);
    trial.ds_config = with_measurement(with_values(ds_config_, chosen, DsUse::kTrial, job_.ranks, source_), files,
                                       job_.spec.steps, job_.version);
    write_atomically(files.ds_config(), ds_config_text(trial.ds_config));
    ProcessSpec& process = trial.process;
    const bool as_text = job_.spec.config_as == DsConfigAs::kBase64;
    const std::string config = as_text ? ds_config_base64(trial.ds_config) : files.ds_config().string();
    process.argv = rewritten(command_, config, with_batch(ds_config_, chosen, job_.ranks, source_), mappings_);
    process.timeout_s = job_.spec.timeout_s;
    process.grace_s = job_.spec.grace_s;
    process.stop = job_.stop;
    process.working_directory = job_.spec.working_directory;
    process.environment = job_.spec.environment;
    const auto is_ours = [](const auto& pair) { return pair.first == "PYTHONUNBUFFERED"; };
    if (std::none_of(process.environment.begin(), process.environment.end(), is_ours)) {
      process.environment.emplace_back("PYTHONUNBUFFERED", "1");  // lines are signs of life
    }
    process.no_progress_s = job_.spec.no_progress_s;
    process.progress_files = {files.metrics(), files.times("forward"), files.times("backward"), files.times("step")};
    write_inputs(plain, to_json(configuration), process);
  }

  DsEnd end_of(const ProcessResult& process, const ProcessSpec& spec) const {
    DsEnd end;
    end.exit_code = process.exit_code;
    end.timed_out = process.timed_out;
    end.hung = process.hung;
    end.wall_s = process.wall_s;
    end.steps_due = job_.spec.steps.due();
    end.standard_output = read_tail(spec.stdout_file, kMostJobFileBytes);
    end.standard_error = read_tail(spec.stderr_file, kMostJobFileBytes);
    return end;
  }

  static bool says_memory(const ProcessSpec& spec) {
    return peak_memory_in(read_tail(spec.stdout_file, kMostJobFileBytes)).has_value();
  }

  std::optional<double> bound_now(const TrialSteps& steps, const Rival& rival) const {
    const auto found = steps.estimate_now();
    if (!found) return std::nullopt;
    const auto metrics = steps.metrics(*found);
    const auto value = metrics.find(job_.metric);
    if (value == metrics.end()) return std::nullopt;
    return bound_of_a_loser({value->second, sem_of(value->second, *found), found->steps}, rival);
  }

  // What was seen while the trial ran.
  struct Seen {
    std::optional<double> bound;         ///< it has lost
    std::optional<Bytes> device_memory;  ///< that it has taken of a GPU
  };

  Outcome finish(const ProcessResult& process, const DsEnd& end, const TrialSteps& steps, const Seen& seen,
                 const DsTrialFiles& files) const {
    if (!process.start_error.empty()) {
      return Failed{FailureReason::kEnvironment, 0,
                    fmt::format("'{}' does not start: {}", command_.argv.front(), process.start_error)};
    }
    if (process.stopped) return Failed{FailureReason::kInterrupted, process.exit_code, ""};
    DsVerdict verdict = judge(end);
    const auto found = steps.estimate_now();
    Json result = {{"status", "failed"}, {"class", to_string(verdict.what)}, {"sentence", verdict.sentence}};
    Outcome outcome;
    if (verdict.what == DsClass::kSuccess) {
      outcome = measured(process, end, steps, found, seen);
    } else if (process.cut_short && seen.bound) {
      outcome = Bounded{*seen.bound};
      result["class"] = "ended early";
      result["sentence"] = fmt::format("surely worse than the best after {} of {} steps", end.steps, end.steps_due);
    } else {
      outcome = outcome_of(verdict, end);
    }
    result["status"] = status_text(outcome);
    if (found) {
      for (const auto& [name, value] : steps.metrics(*found)) result[name] = json_number(value);
    }
    if (const auto* ok = std::get_if<Measured>(&outcome)) {
      if (ok->peak_memory) result["peak_memory_bytes"] = ok->peak_memory->count;
      const auto used = ok->metrics.find(kDeviceMemoryUsed);
      if (used != ok->metrics.end()) result[kDeviceMemoryUsed] = json_number(used->second);
    }
    write_losses(losses_of(end, files), result);
    write_atomically(TrialFiles(files.dir).result(), result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return outcome;
  }

  // Progress bars go to stderr, and what the script does not print some engines write.
  DsLosses losses_of(const DsEnd& end, const DsTrialFiles& files) const {
    const TrialFiles plain(files.dir);
    DsLosses losses;
    for (const std::filesystem::path& output : {plain.standard_output(), plain.standard_error()}) {
      if (losses.values.empty()) losses = losses_in(read_head(output, kMostJobFileBytes), end.steps, end.steps_due);
    }
    if (losses.values.empty()) losses = losses_in_monitor(files.engine_losses(), end.steps_due);
    return losses;
  }

  Outcome measured(const ProcessResult& process, const DsEnd& end, const TrialSteps& steps,
                   const std::optional<DsEstimate>& found, const Seen& seen) const {
    Measured outcome;
    if (found) outcome.metrics = steps.metrics(*found);
    const auto value = outcome.metrics.find(job_.metric);
    if (value == outcome.metrics.end()) {
      std::vector<std::string> names;
      for (const auto& [name, number] : outcome.metrics) names.push_back(name);
      return Failed{
          FailureReason::kBadResult, end.exit_code,
          fmt::format("a trial of a DeepSpeed job has no number '{}'; it has {}", job_.metric, join(names, ", "))};
    }
    outcome.value_sem = sem_of(value->second, *found);
    outcome.peak_memory = peak_memory_in(end.standard_output + end.standard_error);
    if (!outcome.peak_memory && seen.device_memory) {
      // No peak of tensors, so nothing that plans of memory can be held against.
      outcome.metrics.emplace(kDeviceMemoryUsed, static_cast<double>(seen.device_memory->count));
    }
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

std::unique_ptr<Runner> make_deepspeed_runner(DeepSpeedJob job, const Clock& clock) {
  return std::make_unique<DeepSpeedRunner>(std::move(job), clock);
}

}  // namespace krigtune
