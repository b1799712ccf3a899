#include "bench/gpu_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#include "krigtune/core/statistics.h"

namespace krigtune {
namespace {

using Reading = std::optional<double> GpuSample::*;

std::vector<double> known(const std::vector<GpuSample>& samples, Reading reading) {
  std::vector<double> values;
  for (const GpuSample& sample : samples) {
    if (sample.*reading) values.push_back(*(sample.*reading));
  }
  std::sort(values.begin(), values.end());
  return values;
}

// nvml.h, nvmlClocksEventReasons; the words are those of nvidia-smi --help-query-gpu.
std::vector<std::string> words(std::uint64_t reasons) {
  constexpr std::array kWords = {"gpu_idle",
                                 "applications_clocks_setting",
                                 "sw_power_cap",
                                 "hw_slowdown",
                                 "sync_boost",
                                 "sw_thermal_slowdown",
                                 "hw_thermal_slowdown",
                                 "hw_power_brake_slowdown",
                                 "display_clock_setting"};
  std::vector<std::string> said;
  for (std::size_t bit = 0; bit < 64; ++bit) {
    if ((reasons >> bit & 1U) == 0U) continue;
    said.push_back(bit < kWords.size() ? kWords[bit] : fmt::format("bit {}", bit));
  }
  return said;
}

}  // namespace

GpuUse summarize(const std::string& name, const std::vector<GpuSample>& samples) {
  GpuUse use;
  use.name = name;
  if (const auto clocks = known(samples, &GpuSample::sm_clock_mhz); !clocks.empty()) {
    use.sm_clock_mhz_median = quantile(clocks, 0.5);
    use.sm_clock_mhz_min = clocks.front();
  }
  if (const auto powers = known(samples, &GpuSample::power_w); !powers.empty()) {
    use.power_w_mean = std::accumulate(powers.begin(), powers.end(), 0.0) / static_cast<double>(powers.size());
  }
  if (const auto temperatures = known(samples, &GpuSample::temperature_c); !temperatures.empty()) {
    use.temperature_c_max = temperatures.back();
  }
  std::optional<std::uint64_t> reasons;
  for (const GpuSample& sample : samples) {
    if (sample.throttle_reasons) reasons = reasons.value_or(0) | *sample.throttle_reasons;
  }
  if (reasons) use.throttle_reasons = words(*reasons);
  return use;
}

GpuWatch::GpuWatch(std::unique_ptr<GpuSensor> sensor) : sensor_(std::move(sensor)), thread_([this] { watch(); }) {}

GpuWatch::~GpuWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void GpuWatch::forget() {
  const std::lock_guard lock(mutex_);
  samples_.clear();
}

GpuUse GpuWatch::use_now() {
  const std::lock_guard lock(mutex_);
  if (samples_.empty()) samples_.push_back(sensor_->read());
  return summarize(sensor_->name(), samples_);
}

void GpuWatch::watch() {
  constexpr std::chrono::milliseconds kPause(100);
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kPause, [&] { return end_; })) samples_.push_back(sensor_->read());
}

}  // namespace krigtune
