// The functions of the CUDA driver API that count and describe devices; their signatures are part of its stable ABI
// (CUDA Driver API reference: they return CUresult, 0 = success, 100 = no device). None of them makes a context.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "bench/shared_library.h"
#include "krigtune/engine/gpu_probe.h"

namespace krigtune {
namespace {

// CUdevice is an int.
void describe(const SharedLibrary& driver, GpuProbe& probe) {
  auto* get = find<int(int*, int)>(driver, "cuDeviceGet");
  auto* total = find<int(std::size_t*, int)>(driver, "cuDeviceTotalMem_v2");
  auto* name_of = find<int(char*, int, int)>(driver, "cuDeviceGetName");
  for (int ordinal = 0; get != nullptr && ordinal < probe.gpus; ++ordinal) {
    int device = 0;
    if (get(&device, ordinal) != 0) continue;
    std::size_t bytes = 0;
    if (total != nullptr && total(&bytes, device) == 0 && bytes > 0) {
      const auto memory = static_cast<std::int64_t>(bytes);
      probe.memory_bytes = probe.memory_bytes == 0 ? memory : std::min(probe.memory_bytes, memory);
    }
    std::array<char, 256> name{};
    if (ordinal == 0 && name_of != nullptr && name_of(name.data(), static_cast<int>(name.size() - 1), device) == 0) {
      probe.name = name.data();
    }
  }
}

}  // namespace

GpuProbe probe_gpus() {
  constexpr int kNoDevice = 100;
  GpuProbe probe;
  const SharedLibrary driver = open_library("libcuda.so.1");
  if (!driver) {
    probe.reason = "there is no NVIDIA driver (libcuda.so.1 cannot be opened)";
    return probe;
  }
  auto* initialise = find<int(unsigned)>(driver, "cuInit");
  auto* count = find<int(int*)>(driver, "cuDeviceGetCount");
  auto* get_version = find<int(int*)>(driver, "cuDriverGetVersion");
  if (initialise == nullptr || count == nullptr || get_version == nullptr) {
    probe.broken = true;
    probe.reason = "libcuda.so.1 is no CUDA driver";
    return probe;
  }
  get_version(&probe.driver_version);
  if (const int code = initialise(0); code != 0) {
    probe.broken = code != kNoDevice;
    probe.reason = fmt::format("the NVIDIA driver finds no GPU (cuInit gives {})", code);
    return probe;
  }
  if (const int code = count(&probe.gpus); code != 0 || probe.gpus <= 0) {
    probe.reason = fmt::format("the NVIDIA driver finds no GPU (cuDeviceGetCount gives {}, {} GPUs)", code, probe.gpus);
    probe.gpus = 0;
  }
  describe(driver, probe);
  return probe;
}

}  // namespace krigtune
