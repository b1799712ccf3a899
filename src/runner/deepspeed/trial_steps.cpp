#include "trial_steps.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "trial_files.h"

namespace krigtune {
namespace {

constexpr std::size_t kLargestMetrics = 1 << 16;

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
  const auto flops = step_flops_in(read_tail(files_.metrics(), kLargestMetrics));
  if (flops) metrics["flops_per_s"] = *flops / found.step_time_s;
  return metrics;
}

}  // namespace krigtune
