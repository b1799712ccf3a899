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

/// What a GPU does at a moment. Empty: it cannot be read.
struct GpuSample {
  std::optional<double> sm_clock_mhz{};
  std::optional<double> power_w{};
  std::optional<double> temperature_c{};
  std::optional<std::uint64_t> throttle_reasons{};  ///< bits as NVML's clocks event reasons
};

/// A GPU that can be asked.
class GpuSensor {
 public:
  virtual ~GpuSensor() = default;
  virtual std::string name() const = 0;  ///< empty: it cannot be read
  virtual GpuSample read() = 0;          ///< never throws
};

/// What a GPU did over a while.
struct GpuUse {
  std::string name;
  std::optional<double> sm_clock_mhz_median;
  std::optional<double> sm_clock_mhz_min;
  std::optional<double> power_w_mean;
  std::optional<double> temperature_c_max;
  std::optional<std::vector<std::string>> throttle_reasons;  ///< in nvidia-smi's words, all that have been seen
};
GpuUse summarize(const std::string& name, const std::vector<GpuSample>& samples);

/// Reads the sensor ten times a second in a thread of its own, as long as it lives.
class GpuWatch {
 public:
  explicit GpuWatch(std::unique_ptr<GpuSensor> sensor);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  void forget();     ///< what has been read so far
  GpuUse use_now();  ///< since then, from one reading at least

 private:
  void watch();

  std::unique_ptr<GpuSensor> sensor_;
  std::vector<GpuSample> samples_;
  std::mutex mutex_;  ///< of both
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

/// The GPU at a PCI address ("0000:65:00.0"), read through NVIDIA's management library, which is opened at run time.
/// Null where there is none, or it does not know the GPU.
std::unique_ptr<GpuSensor> open_nvml(const std::string& pci_address, const char* library = "libnvidia-ml.so.1");

}  // namespace krigtune::bench
