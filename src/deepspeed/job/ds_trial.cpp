// Estimates the speed of a trial. The engine's csv files contain the milliseconds of forward, backward and optimizer
// for each step, summed over its micro-steps. Their sum is estimated as in trial/step_series.cpp: the median of the
// steps after the warm-up, with a standard error that treats steps as independent.
//
// DeepSpeed's own figure is not used: metrics.json covers one step, because its timers are reset after each one, and
// from 6 micro-steps on the trimmed mean drops the only one that includes the optimizer (measured: 12.7 times too fast
// at accumulation 6 with DeepSpeed 0.14.4; `step` 15 us instead of 5 to 17 ms in
// tests/runner/deepspeed_outputs/trial_ok). Its throughput counts each rank of a tensor-parallel group
// (deepspeedai/DeepSpeed#7298).
#include "deepspeed/job/ds_trial.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "deepspeed/job/ds_config.h"
#include "trial/step_series.h"
#include "trial/trial_files.h"

namespace krigtune::deepspeed {

Json begun_ds_config(const DeepSpeedSpec& spec) {
  if (spec.ds_config_text.empty()) return load_ds_config(spec.ds_config);
  return read_ds_config(spec.ds_config_text, spec.ds_config.string());
}

std::filesystem::path begun_ds_config_path(const std::filesystem::path& run_directory) {
  return run_directory / "ds_config_begun.json";
}

bool has_changed_since(const DeepSpeedSpec& spec) {
  if (spec.ds_config_text.empty()) return false;
  try {
    return read_text(spec.ds_config) != spec.ds_config_text;
  } catch (const UserError&) {
    return true;
  }
}

namespace {

constexpr const char* kJob = "trial";
constexpr double kMs = 1e-3;

std::optional<double> finite_number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<double> finite_number_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : finite_number_in(line.substr(at + words.size()));
}

// Calls visit(line) for each line that has an end and, if `torn`, for the incomplete last one.
template <class Visit>
void for_each_line(std::string_view text, bool torn, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos && !torn) return;
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

struct StepRow {
  double samples;
  double value_s;
};

// Headers are skipped; one appears each time the engine is created. An unreadable row ends the reading.
std::vector<StepRow> read_rows(const std::filesystem::path& file) {
  std::vector<StepRow> rows;
  bool good = true;
  for_each_line(trial::read_tail(file, trial::kMostJobFileBytes), false, [&](std::string_view line) {
    if (line.substr(0, 5) == "step," || line.empty() || line == "\r") return;
    const std::size_t comma = std::min(line.find(','), line.size());
    const double samples = finite_number_in(line.substr(0, comma)).value_or(-1.0);
    const double value_ms = comma < line.size() ? finite_number_in(line.substr(comma + 1)).value_or(-1.0) : -1.0;
    good = good && samples >= 0.0 && value_ms >= 0.0;
    if (good) rows.push_back({samples, value_ms * kMs});
  });
  return rows;
}

std::optional<double> samples_of_a_step(const std::vector<DsStepTime>& times) {
  if (times.size() < 2 || !(times.front().samples > 0.0)) return std::nullopt;
  const double samples = (times.back().samples - times.front().samples) / static_cast<double>(times.size() - 1);
  return samples > 0.0 ? std::optional(samples) : std::nullopt;
}

}  // namespace

std::filesystem::path DsTrialFiles::times(const std::string& part) const {
  return monitor() / kJob / ("Train_Samples_elapsed_time_ms_" + part + ".csv");
}

std::filesystem::path DsTrialFiles::engine_losses() const { return monitor() / kJob / "Train_Samples_train_loss.csv"; }

Json with_measurement(const Json& config, const DsTrialFiles& files, const DsSteps& steps,
                      const std::optional<DsVersion>& version) {
  Json trial = config;
  // The profiler's hooks run during the warm-up.
  trial["autotuning"] = {{"enabled", true},
                         {"start_profile_step", 1},
                         {"end_profile_step", steps.due()},
                         {"metric_path", files.metrics().string()}};
  trial["csv_monitor"] = {{"enabled", true}, {"output_path", files.monitor().string()}, {"job_name", kJob}};
  trial["steps_per_print"] = 1;
  const bool has_log_level = !version || has(*version, DsFeature::kLogLevelKey);
  if (has_log_level && !trial.contains("log_level")) trial["log_level"] = "info";
  for (const char* other : {"tensorboard", "wandb", "comet"}) {
    if (trial.contains(other) && trial[other].is_object()) trial[other]["enabled"] = false;
  }
  return trial;
}

std::vector<DsStepTime> read_step_times(const DsTrialFiles& files) {
  const std::vector<StepRow> forward = read_rows(files.times("forward"));
  const std::vector<StepRow> backward = read_rows(files.times("backward"));
  const std::vector<StepRow> optimizer = read_rows(files.times("step"));
  std::vector<DsStepTime> times;
  for (std::size_t i = 0; i < std::min({forward.size(), backward.size(), optimizer.size()}); ++i) {
    const DsStepTime time{forward[i].samples, forward[i].value_s, backward[i].value_s, optimizer[i].value_s};
    const bool agree = backward[i].samples == time.samples && optimizer[i].samples == time.samples;
    if (!agree || !(time.total_s() > 0.0)) break;
    times.push_back(time);
  }
  return times;
}

std::vector<DsStepTime> step_times_in(const std::string& output) {
  std::vector<DsStepTime> times;
  for_each_line(output, true, [&](std::string_view line) {
    if (line.find("time (ms)") == std::string_view::npos) return;
    const auto forward = finite_number_after(line, "| fwd: ");
    const auto backward = finite_number_after(line, "| bwd: ");
    const auto optimizer = finite_number_after(line, "| step: ");
    if (!forward || !backward || !optimizer) return;
    times.push_back({0.0, *forward * kMs, *backward * kMs, *optimizer * kMs});
  });
  return times;
}

std::optional<DsEstimate> estimate(const std::vector<DsStepTime>& times, std::int64_t warmup,
                                   std::int64_t tensor_parallel) {
  if (static_cast<std::int64_t>(times.size()) <= warmup) return std::nullopt;
  std::vector<double> totals, forward, backward, optimizer;
  for (auto time = times.begin() + warmup; time != times.end(); ++time) {
    totals.push_back(time->total_s());
    forward.push_back(time->forward_s);
    backward.push_back(time->backward_s);
    optimizer.push_back(time->optimizer_s);
  }
  DsEstimate result;
  const trial::StepEstimate total = *trial::estimate_steps(totals, 0);
  result.step_time_s = total.value;
  result.mean_step_time_s = total.mean;
  result.step_time_sem_s = total.independent_sem;
  result.forward_s = trial::middle(std::move(forward));
  result.backward_s = trial::middle(std::move(backward));
  result.optimizer_s = trial::middle(std::move(optimizer));
  result.steps = total.steps;
  result.samples_per_step = samples_of_a_step(times);
  if (result.samples_per_step) *result.samples_per_step /= static_cast<double>(tensor_parallel);
  return result;
}

std::int64_t tensor_parallel_of(const Json& config) {
  const auto section = config.find("tensor_parallel");
  if (section == config.end() || !section->is_object()) return 1;
  const auto size = section->find("autotp_size");
  return size != section->end() && size->is_number_integer() ? std::max<std::int64_t>(1, size->get<std::int64_t>()) : 1;
}

void DsArrivals::look(std::int64_t rows, double written_s) {
  if (rows < std::max<std::int64_t>(warmup_, 1) || rows <= last_rows_) return;
  if (first_rows_ == 0) {
    first_rows_ = rows;
    first_s_ = written_s;
  }
  last_rows_ = rows;
  last_s_ = written_s;
}

std::optional<double> DsArrivals::wall_step_time_s() const {
  if (last_rows_ <= first_rows_ || !(last_s_ > first_s_)) return std::nullopt;
  return (last_s_ - first_s_) / static_cast<double>(last_rows_ - first_rows_);
}

std::optional<Bytes> peak_memory_in(const std::string& output) {
  double gib = 0.0;
  for_each_line(output, true, [&](std::string_view line) {
    for (const std::string_view words : {"MaxMemAllocated=", "Max_MA "}) {
      gib = std::max(gib, finite_number_after(line, words).value_or(0.0));
    }
  });
  constexpr double kMost = 1e9;  // an exbibyte; no memory is larger
  if (!(gib > 0.0 && gib < kMost)) return std::nullopt;
  return from_gib(gib);
}

// FLOPS_per_gpu = flops * micro-steps * 1e6 / latency, with the latency in microseconds (engine.py, _autotuning_exit).
std::optional<double> step_flops_in(const std::string& metrics_json) {
  const Json metrics = json_or_discarded(metrics_json);
  if (!metrics.is_object()) return std::nullopt;
  const auto rate = metrics.find("FLOPS_per_gpu");
  const auto latency = metrics.find("latency");
  if (rate == metrics.end() || latency == metrics.end() || !rate->is_number() || !latency->is_number()) {
    return std::nullopt;
  }
  const double flops = rate->get<double>() * latency->get<double>() * 1e-6;
  return flops > 0.0 && std::isfinite(flops) ? std::optional(flops) : std::nullopt;
}

namespace {

constexpr std::size_t kLargestMetrics = 1 << 16;

// Computes the samples of a step over all ranks from the configuration, in case the engine did not report them.
std::optional<double> samples_of(const Json& ds_config, const DsRanks& ranks) {
  double samples = static_cast<double>(counted_ranks(ds_config, ranks, "ds_config.json")) /
                   static_cast<double>(tensor_parallel_of(ds_config));
  for (const char* key : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    const auto value = ds_config.find(key);
    if (value == ds_config.end() || !value->is_number()) return std::nullopt;
    samples *= value->get<double>();
  }
  return samples;
}

}  // namespace

TrialSteps::TrialSteps(const DsTrialFiles& files, const Json& ds_config, const DeepSpeedJob& job)
    : files_(files),
      ds_config_(ds_config),
      steps_(job.spec.steps),
      ranks_(job.ranks),
      tokens_per_sample_(job.tokens_per_sample),
      arrivals_(job.spec.steps.warmup) {}

bool TrialSteps::look() {
  const std::filesystem::path file = files_.times("step");
  std::error_code error;
  const auto written = std::filesystem::last_write_time(file, error);
  if (error) return false;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error || size == size_) return false;
  size_ = size;
  times_ = read_step_times(files_);
  const double written_s = std::chrono::duration<double>(written.time_since_epoch()).count();
  arrivals_.look(count(), written_s);
  return true;
}

void TrialSteps::finish(const std::string& output) {
  size_ = 0;
  look();
  if (times_.empty()) times_ = step_times_in(output);
}

std::optional<DsEstimate> TrialSteps::estimate_now() const {
  auto found = estimate(times_, steps_.warmup, tensor_parallel_of(ds_config_));
  if (found && !found->samples_per_step) found->samples_per_step = samples_of(ds_config_, ranks_);
  return found;
}

std::map<std::string, double> TrialSteps::metrics(const DsEstimate& found) const {
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
  const auto flops = step_flops_in(trial::read_tail(files_.metrics(), kLargestMetrics));
  if (flops) metrics["flops_per_s"] = *flops / found.step_time_s;
  return metrics;
}

}  // namespace krigtune::deepspeed
