// A trial of a DeepSpeed job: the user's command with the trial's own ds_config.json. Steps are read while they come
// in: for the end of a trial that has lost, for the watchdog, and because the time at which a row was written is the
// only trace of what the engine does not count.
#include "krigtune/runner/deepspeed/deepspeed_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/runner/deepspeed/ds_outcome.h"
#include "krigtune/runner/deepspeed/ds_trial.h"
#include "program.h"
#include "race.h"
#include "trial_files.h"

namespace krigtune {
namespace {

constexpr std::size_t kTailBytes = 1 << 22;  // of stdout and of stderr
constexpr std::size_t kLargestMetrics = 1 << 16;

// What is given to a trial.
struct Prepared {
  DsTrialFiles files;
  Json ds_config;
  ProcessSpec process;
};

// Samples of a step over all ranks, where the engine did not say: the configuration does.
std::optional<double> samples_of(const Json& ds_config, std::int64_t ranks) {
  double samples = static_cast<double>(ranks) / static_cast<double>(tensor_parallel_of(ds_config));
  for (const char* key : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    const auto value = ds_config.find(key);
    if (value == ds_config.end() || !value->is_number()) return std::nullopt;
    samples *= value->get<double>();
  }
  return samples;
}

// The steps of a running trial.
class Steps {
 public:
  Steps(const Prepared& trial, const DeepSpeedJob& job)
      : trial_(trial),
        steps_(job.spec.steps),
        ranks_(job.ranks),
        tokens_per_sample_(job.tokens_per_sample),
        arrivals_(job.spec.steps.warmup) {}

  /// False: nothing new.
  bool look() {
    const std::filesystem::path file = trial_.files.times("step");
    std::error_code error;
    const auto written = std::filesystem::last_write_time(file, error);
    if (error) return false;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (error || size == size_) return false;
    size_ = size;
    times_ = read_step_times(trial_.files);
    const double written_s = std::chrono::duration<double>(written.time_since_epoch()).count();
    arrivals_.look(static_cast<std::int64_t>(times_.size()), written_s);
    return true;
  }

  /// Once it has ended. `output`: in case that the files are not seen from here.
  void finish(const std::string& output) {
    size_ = 0;
    look();
    if (times_.empty()) times_ = step_times_in(output);
  }

  std::int64_t count() const { return static_cast<std::int64_t>(times_.size()); }

  std::optional<DsEstimate> estimate_now() const {
    auto found = estimate(times_, steps_.warmup, tensor_parallel_of(trial_.ds_config));
    if (found && !found->samples_per_step) found->samples_per_step = samples_of(trial_.ds_config, ranks_);
    return found;
  }

  std::map<std::string, double> metrics(const DsEstimate& found) const {
    std::map<std::string, double> metrics = {
        {"step_time_s", found.step_time_s}, {"step_time_sem_s", found.step_time_sem_s},
        {"forward_s", found.forward_s},     {"backward_s", found.backward_s},
        {"optimizer_s", found.optimizer_s}, {"steps", static_cast<double>(found.steps)}};
    if (found.samples_per_step) {
      const double samples_per_s = *found.samples_per_step / found.step_time_s;
      metrics["samples_per_s"] = samples_per_s;
      if (tokens_per_sample_ > 0) metrics["tokens_per_s"] = samples_per_s * static_cast<double>(tokens_per_sample_);
    }
    if (const auto wall = arrivals_.wall_step_time_s()) {
      metrics["wall_step_time_s"] = *wall;
      metrics["data_loading_s"] = std::max(0.0, *wall - found.mean_step_time_s);
    }
    const auto flops = step_flops_in(read_tail(trial_.files.metrics(), kLargestMetrics));
    if (flops) metrics["flops_per_s"] = *flops / found.step_time_s;
    return metrics;
  }

 private:
  const Prepared& trial_;
  DsSteps steps_;
  std::int64_t ranks_;
  std::int64_t tokens_per_sample_;
  DsArrivals arrivals_;
  std::vector<DsStepTime> times_;
  std::uintmax_t size_ = 0;
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
        ds_config_(load_ds_config(job_.spec.ds_config)) {
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
    Steps steps(trial, job_);
    std::optional<double> bound;
    trial.process.enough = [&] {
      if (!steps.look() || !rival || !job_.spec.early_end || rival->metric != job_.metric) return false;
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
    return finish(process, end, steps, bound, trial.files);
  }

 private:
  void prepare(const Configuration& configuration, Prepared& trial) const {
    const DsTrialFiles& files = trial.files;
    const TrialFiles plain(files.dir);
    std::error_code ignored;
    for (const auto& old : {files.monitor(), files.metrics(), plain.result()}) {
      std::filesystem::remove_all(old, ignored);  // of an earlier run of the same trial: DeepSpeed appends
    }
    const Configuration chosen = at_the_flags_batch(configuration);
    trial.ds_config =
        with_measurement(with_values(ds_config_, chosen, DsUse::kTrial, job_.ranks, source_), files, job_.spec.steps);
    write_atomically(files.ds_config(), ds_config_text(trial.ds_config));
    ProcessSpec& process = trial.process;
    process.argv =
        rewritten(command_, files.ds_config().string(), with_batch(ds_config_, chosen, job_.ranks, source_), mappings_);
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

  // Where the file says "auto", the script's flags say the batch. It stays, or samples/s of different batches would be
  // compared: of micro-batch and accumulation the one that is not chosen follows.
  Configuration at_the_flags_batch(Configuration configuration) const {
    constexpr const char* kMicroBatch = "micro_batch";
    constexpr const char* kAccumulation = "gradient_accumulation_steps";
    const Configuration said = values_of_flags(command_, mappings_);
    const bool one = configuration.has(kMicroBatch) != configuration.has(kAccumulation);
    if (!one || !said.has(kMicroBatch) || train_batch_size_of(ds_config_, job_.ranks, source_)) return configuration;
    const char* given = configuration.has(kMicroBatch) ? kMicroBatch : kAccumulation;
    const char* other = given == kMicroBatch ? kAccumulation : kMicroBatch;
    const Value* steps = said.find(kAccumulation);
    const double batch = as_number(*said.find(kMicroBatch)) * (steps == nullptr ? 1.0 : as_number(*steps));
    const double rest = batch / as_number(*configuration.find(given));
    if (rest != std::trunc(rest)) {
      throw UserError(fmt::format("the flags' batch of {} a rank is no multiple of {} {}", batch, given,
                                  to_string(*configuration.find(given))),
                      "leave that value out of the space");
    }
    configuration.set(other, number_value(rest));
    return configuration;
  }

  DsEnd end_of(const ProcessResult& process, const ProcessSpec& spec) const {
    DsEnd end;
    end.exit_code = process.exit_code;
    end.timed_out = process.timed_out;
    end.hung = process.hung;
    end.wall_s = process.wall_s;
    end.steps_due = job_.spec.steps.due();
    end.standard_output = read_tail(spec.stdout_file, kTailBytes);
    end.standard_error = read_tail(spec.stderr_file, kTailBytes);
    return end;
  }

  std::optional<double> bound_now(const Steps& steps, const Rival& rival) const {
    const auto found = steps.estimate_now();
    if (!found) return std::nullopt;
    const auto metrics = steps.metrics(*found);
    const auto value = metrics.find(job_.metric);
    if (value == metrics.end()) return std::nullopt;
    return bound_of_a_loser({value->second, sem_of(value->second, *found), found->steps}, rival);
  }

  Outcome finish(const ProcessResult& process, const DsEnd& end, const Steps& steps, const std::optional<double>& bound,
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
      outcome = measured(process, end, steps, found);
    } else if (process.cut_short && bound) {
      outcome = Bounded{*bound};
      result["class"] = "ended early";
      result["sentence"] = fmt::format("surely worse than the best after {} of {} steps", end.steps, end.steps_due);
    } else {
      outcome = outcome_of(verdict, end);
    }
    result["status"] = status_text(outcome);
    if (found) {
      for (const auto& [name, value] : steps.metrics(*found)) result[name] = json_number(value);
    }
    write_atomically(TrialFiles(files.dir).result(), result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return outcome;
  }

  Outcome measured(const ProcessResult& process, const DsEnd& end, const Steps& steps,
                   const std::optional<DsEstimate>& found) const {
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
