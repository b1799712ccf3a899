#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
namespace krigtune::bench {

/// The state of a GPU at one moment. Values that cannot be read are empty.
struct GpuSample {
  std::optional<double> sm_clock_mhz{};
  std::optional<double> power_w{};
  std::optional<double> temperature_c{};
  std::optional<std::uint64_t> throttle_reasons{};  ///< NVML's bits of clocks event reasons
};

/// A GPU whose state can be read.
class GpuSensor {
 public:
  virtual ~GpuSensor() = default;
  virtual std::string name() const = 0;  ///< empty if it cannot be read
  virtual GpuSample read() = 0;          ///< never throws
};

/// The states of a GPU over a period.
struct GpuUse {
  std::string name;
  std::optional<double> sm_clock_mhz_median;
  std::optional<double> sm_clock_mhz_min;
  std::optional<double> power_w_mean;
  std::optional<double> temperature_c_max;
  std::optional<std::vector<std::string>> throttle_reasons;  ///< all that occurred, in nvidia-smi's words
};
GpuUse summarize(const std::string& name, const std::vector<GpuSample>& samples);

/// Reads the sensor ten times a second in a thread of its own, until it is destroyed.
class GpuWatch {
 public:
  explicit GpuWatch(std::unique_ptr<GpuSensor> sensor);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  void forget();     ///< drops all readings so far
  GpuUse use_now();  ///< since then, from at least one reading

 private:
  void watch();

  std::unique_ptr<GpuSensor> sensor_;
  std::vector<GpuSample> samples_;
  std::mutex mutex_;  ///< guards the next two
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

/// Opens the GPU at a PCI address ("0000:65:00.0") through NVIDIA's management library, which is loaded at run time.
/// Returns null if there is no such library or it does not know the GPU.
std::unique_ptr<GpuSensor> open_nvml(const std::string& pci_address, const char* library = "libnvidia-ml.so.1");

}  // namespace krigtune::bench
