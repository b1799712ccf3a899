// Dense rates, visible memory and the fractions of a peak that training reaches: experiments/data/gpus.csv, which names
// its sources. half_gflop was fitted on measured products of the A100 (183 shapes, bf16) and the V100 (80, fp16) with
// errors of 4.7 and 4.5 %: 22 microseconds at the rate that large products reach. For all others it is these.
#include <algorithm>
#include <array>
#include <string_view>

#include "hardware.h"

namespace krigtune {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

struct DeviceLine {
  std::string_view id;
  double memory_gib;
  double fp32_tflops, fp16_tflops, bf16_tflops;
  double memory_gb_per_s;
  double gemm_fraction;
  double half_gflop;
  double memory_fraction;
  double host_gb_per_s;
  std::string_view interconnect;
};
// One line per device, in the table's order.
constexpr std::array kDeviceLines = {
    DeviceLine{"v100-16gb-pcie", 15.77, 14.0, 112.0, 0.0, 900.0, 0.6, 1.5, 0.85, 12.0, "pcie3"},
    DeviceLine{"v100-16gb", 15.77, 15.7, 125.0, 0.0, 900.0, 0.65, 2.0, 0.85, 12.0, "nvlink2"},
    DeviceLine{"v100-32gb", 31.74, 15.7, 125.0, 0.0, 900.0, 0.65, 2.0, 0.85, 12.0, "nvlink2"},
    DeviceLine{"a100-40gb-pcie", 39.4, 19.5, 312.0, 312.0, 1555.0, 0.7, 5.0, 0.85, 25.0, "pcie4"},
    DeviceLine{"a100-40gb", 39.4, 19.5, 312.0, 312.0, 1555.0, 0.75, 5.0, 0.85, 25.0, "nvlink3"},
    DeviceLine{"a100-80gb-pcie", 79.2, 19.5, 312.0, 312.0, 1935.0, 0.72, 5.0, 0.85, 25.0, "pcie4"},
    DeviceLine{"a100-80gb", 79.2, 19.5, 312.0, 312.0, 2039.0, 0.75, 5.0, 0.85, 25.0, "nvlink3"},
    DeviceLine{"h100-80gb-pcie", 79.1, 51.0, 756.0, 756.0, 2000.0, 0.65, 11.0, 0.85, 50.0, "pcie5"},
    DeviceLine{"h100-80gb", 79.1, 67.0, 989.0, 989.0, 3350.0, 0.64, 14.0, 0.85, 50.0, "nvlink4"},
    DeviceLine{"h100-96gb", 94.5, 67.0, 989.0, 989.0, 2400.0, 0.64, 14.0, 0.85, 50.0, "nvlink4"},
    DeviceLine{"h200-141gb", 139.8, 67.0, 989.0, 989.0, 4800.0, 0.64, 14.0, 0.85, 50.0, "nvlink4"},
    DeviceLine{"b200-180gb", 178.4, 80.0, 2250.0, 2250.0, 8000.0, 0.48, 24.0, 0.85, 50.0, "nvlink5"},
    DeviceLine{"l4-24gb", 22.2, 30.3, 121.0, 121.0, 300.0, 0.5, 1.3, 0.85, 25.0, "pcie4"},
    DeviceLine{"l40s-48gb", 44.45, 91.6, 362.0, 362.0, 864.0, 0.6, 4.8, 0.85, 25.0, "pcie4"},
    DeviceLine{"a10-24gb", 22.2, 31.2, 125.0, 125.0, 600.0, 0.6, 1.7, 0.85, 25.0, "pcie4"},
    DeviceLine{"a10g-24gb", 22.2, 31.2, 70.0, 70.0, 600.0, 0.65, 1.0, 0.85, 25.0, "pcie4"},
    DeviceLine{"rtx4090-24gb", 23.65, 82.6, 165.2, 165.2, 1008.0, 0.85, 3.1, 0.85, 25.0, "pcie4"},
    DeviceLine{"mi300x-192gb", 191.5, 163.4, 1307.4, 1307.4, 5300.0, 0.45, 13.0, 0.85, 50.0, "xgmi-mi300x"},
};

// FlashAttention-2, forward and backward: up to 187 TFLOP/s on an A100 with a causal mask, 335 on an H100 (Dao 2023,
// figures 5 and 7), whose tensor cores it does not feed asynchronously. Behind Hopper as on it; others by their
// products.
double attention_fraction(const DeviceLine& line) {
  if (line.id.starts_with("a100")) return 0.58;
  if (line.id.starts_with("h") || line.id.starts_with("b")) return 0.335;
  return 0.75 * line.gemm_fraction;
}

DeviceSpec device_from(const DeviceLine& line) {
  DeviceSpec device;
  device.id = line.id;
  device.memory = from_gib(line.memory_gib);
  device.fp32_flops_per_s = line.fp32_tflops * kTera;
  device.fp16_flops_per_s = line.fp16_tflops * kTera;
  device.bf16_flops_per_s = line.bf16_tflops * kTera;
  device.memory_bytes_per_s = line.memory_gb_per_s * kGiga;
  device.gemm_fraction = line.gemm_fraction;
  device.gemm_half_flops = line.half_gflop * kGiga;
  device.attention_fraction = attention_fraction(line);
  device.memory_fraction = line.memory_fraction;
  device.host_bytes_per_s = line.host_gb_per_s * kGiga;
  device.interconnect = line.interconnect;
  return device;
}

}  // namespace

std::vector<DeviceSpec> known_devices() {
  std::vector<DeviceSpec> devices;
  std::transform(kDeviceLines.begin(), kDeviceLines.end(), std::back_inserter(devices), device_from);
  return devices;
}

std::vector<std::string> device_names() { return Hardware{known_devices(), {}}.device_ids(); }

DeviceSpec device_of(const std::string& id, const std::string& where) {
  return Hardware{known_devices(), {}}.device(id, where);
}

}  // namespace krigtune
