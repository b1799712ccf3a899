#include "programs/bench/gpu_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#include "core/statistics.h"
#include "engine/shared_library.h"

namespace krigtune::bench {

// The functions of NVML that read a GPU's state. They are declared here because nvml.h is not part of the CUDA
// toolkit's runtime packages. Their signatures are part of a stable ABI (NVML API Reference: they return nvmlReturn_t,
// 0 = success). nvmlDeviceGetPowerUsage returns the mean of the last second on GPUs since Ampere (on the A100 the
// current value).

namespace {

constexpr int kSmClock = 1;         // NVML_CLOCK_SM
constexpr int kGpuTemperature = 0;  // NVML_TEMPERATURE_GPU

using Device = struct nvmlDevice_st*;

class Nvml final : public GpuSensor {
 public:
  explicit Nvml(engine::SharedLibrary library)
      : library_(std::move(library)),
        shutdown_(engine::find<int()>(library_, "nvmlShutdown")),
        name_(engine::find<int(Device, char*, unsigned)>(library_, "nvmlDeviceGetName")),
        clock_(engine::find<int(Device, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo")),
        power_(engine::find<int(Device, unsigned*)>(library_, "nvmlDeviceGetPowerUsage")),
        temperature_(engine::find<int(Device, int, unsigned*)>(library_, "nvmlDeviceGetTemperature")),
        reasons_(
            engine::find<int(Device, unsigned long long*)>(library_, "nvmlDeviceGetCurrentClocksThrottleReasons")) {
    // The name since driver 535; the old one may disappear.
    if (reasons_ == nullptr) {
      reasons_ = engine::find<int(Device, unsigned long long*)>(library_, "nvmlDeviceGetCurrentClocksEventReasons");
    }
  }
  ~Nvml() override {
    if (started_ && shutdown_ != nullptr) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool start(const std::string& pci_address) {
    auto* initialise = engine::find<int()>(library_, "nvmlInit_v2");
    auto* get = engine::find<int(const char*, Device*)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
    started_ = initialise != nullptr && get != nullptr && initialise() == 0;
    return started_ && get(pci_address.c_str(), &device_) == 0;
  }

  std::string name() const override {
    std::array<char, 97> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, and a terminating 0
    const bool read = name_ != nullptr && name_(device_, text.data(), static_cast<unsigned>(text.size() - 1)) == 0;
    return read ? text.data() : "";
  }

  GpuSample read() override {
    constexpr double kMilliwatt = 1e-3;
    GpuSample sample;
    unsigned value = 0;
    if (clock_ != nullptr && clock_(device_, kSmClock, &value) == 0) sample.sm_clock_mhz = value;
    if (power_ != nullptr && power_(device_, &value) == 0) sample.power_w = kMilliwatt * value;
    if (temperature_ != nullptr && temperature_(device_, kGpuTemperature, &value) == 0) sample.temperature_c = value;
    unsigned long long reasons = 0;
    if (reasons_ != nullptr && reasons_(device_, &reasons) == 0) sample.throttle_reasons = reasons;
    return sample;
  }

 private:
  engine::SharedLibrary library_;
  int (*shutdown_)();
  int (*name_)(Device, char*, unsigned);
  int (*clock_)(Device, int, unsigned*);
  int (*power_)(Device, unsigned*);
  int (*temperature_)(Device, int, unsigned*);
  int (*reasons_)(Device, unsigned long long*);
  Device device_ = nullptr;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<GpuSensor> open_nvml(const std::string& pci_address, const char* library) {
  engine::SharedLibrary opened = engine::open_library(library);
  if (!opened) return nullptr;
  auto nvml = std::make_unique<Nvml>(std::move(opened));
  if (!nvml->start(pci_address)) return nullptr;
  return nvml;
}

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

// Reasons as in nvml.h, nvmlClocksEventReasons, in the words of nvidia-smi --help-query-gpu.
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

}  // namespace krigtune::bench
