// The functions of NVML that read a GPU, with our own declarations: nvml.h is no part of the CUDA toolkit's runtime
// packages. Their signatures are part of a stable ABI (NVML API Reference: they return nvmlReturn_t, 0 = success).
// nvmlDeviceGetPowerUsage is the mean of the last second on GPUs since Ampere (but for the A100: the moment's).
#include "bench/nvml.h"

#include <array>

#include "bench/shared_library.h"

namespace krigtune {
namespace {

constexpr int kSmClock = 1;         // NVML_CLOCK_SM
constexpr int kGpuTemperature = 0;  // NVML_TEMPERATURE_GPU

using Device = struct nvmlDevice_st*;

class Nvml final : public GpuSensor {
 public:
  explicit Nvml(SharedLibrary library)
      : library_(std::move(library)),
        shutdown_(find<int()>(library_, "nvmlShutdown")),
        name_(find<int(Device, char*, unsigned)>(library_, "nvmlDeviceGetName")),
        clock_(find<int(Device, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo")),
        power_(find<int(Device, unsigned*)>(library_, "nvmlDeviceGetPowerUsage")),
        temperature_(find<int(Device, int, unsigned*)>(library_, "nvmlDeviceGetTemperature")),
        reasons_(find<int(Device, unsigned long long*)>(library_, "nvmlDeviceGetCurrentClocksThrottleReasons")) {
    // Its name since driver 535; the old one may go.
    if (reasons_ == nullptr) {
      reasons_ = find<int(Device, unsigned long long*)>(library_, "nvmlDeviceGetCurrentClocksEventReasons");
    }
  }
  ~Nvml() override {
    if (started_ && shutdown_ != nullptr) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool start(const std::string& pci_address) {
    auto* initialise = find<int()>(library_, "nvmlInit_v2");
    auto* get = find<int(const char*, Device*)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
    started_ = initialise != nullptr && get != nullptr && initialise() == 0;
    return started_ && get(pci_address.c_str(), &device_) == 0;
  }

  std::string name() const override {
    std::array<char, 97> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, and its end
    const bool read = name_ != nullptr && name_(device_, text.data(), static_cast<unsigned>(text.size() - 1)) == 0;
    return read ? text.data() : "";
  }

  GpuSample read() override {
    constexpr double kMilli = 1e-3;
    GpuSample sample;
    unsigned value = 0;
    if (clock_ != nullptr && clock_(device_, kSmClock, &value) == 0) sample.sm_clock_mhz = value;
    if (power_ != nullptr && power_(device_, &value) == 0) sample.power_w = kMilli * value;
    if (temperature_ != nullptr && temperature_(device_, kGpuTemperature, &value) == 0) sample.temperature_c = value;
    unsigned long long reasons = 0;
    if (reasons_ != nullptr && reasons_(device_, &reasons) == 0) sample.throttle_reasons = reasons;
    return sample;
  }

 private:
  SharedLibrary library_;
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
  SharedLibrary opened = open_library(library);
  if (!opened) return nullptr;
  auto nvml = std::make_unique<Nvml>(std::move(opened));
  if (!nvml->start(pci_address)) return nullptr;
  return nvml;
}

}  // namespace krigtune
