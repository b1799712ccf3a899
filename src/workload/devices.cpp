// The GPUs that are known by name, and the names that drivers and people have for them.
//
// Dense rates, visible memory and the fractions of a peak that training reaches are those of experiments/data/gpus.csv,
// which names its sources. half_gflop was fitted to measured products of the A100 (183 shapes, bf16) and the V100 (80,
// fp16), with errors of 4.7 and 4.5 %. It corresponds to 22 microseconds at the rate of large products, and this time
// is assumed for all other devices.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "workload/hardware.h"
#include "workload/hardware_tables.h"

namespace krigtune::workload {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr std::int64_t kNvl72 = 72;  // GPUs that one NVLink domain of a GB200 or GB300 NVL72 rack joins (data sheets)

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
  std::int64_t domain = 0;  ///< GPUs that the links join, if these are more than a node
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
    DeviceLine{"a800-80gb-pcie", 79.2, 19.5, 312.0, 312.0, 1935.0, 0.72, 5.0, 0.85, 25.0, "pcie4"},
    DeviceLine{"a800-80gb", 79.2, 19.5, 312.0, 312.0, 2039.0, 0.75, 5.0, 0.85, 25.0, "nvlink3-a800"},
    DeviceLine{"h100-80gb-pcie", 79.1, 51.0, 756.0, 756.0, 2000.0, 0.65, 11.0, 0.85, 50.0, "pcie5"},
    DeviceLine{"h100-80gb", 79.1, 67.0, 989.0, 989.0, 3350.0, 0.64, 14.0, 0.85, 50.0, "nvlink4"},
    DeviceLine{"h100-96gb", 94.5, 67.0, 989.0, 989.0, 2400.0, 0.64, 14.0, 0.85, 50.0, "nvlink4"},
    DeviceLine{"h200-141gb", 139.8, 67.0, 989.0, 989.0, 4800.0, 0.64, 14.0, 0.85, 50.0, "nvlink4"},
    DeviceLine{"h800-80gb", 79.1, 67.0, 989.0, 989.0, 3350.0, 0.64, 14.0, 0.85, 50.0, "nvlink4-h800"},
    DeviceLine{"h20-96gb", 95.0, 44.0, 148.0, 148.0, 4000.0, 0.8, 2.6, 0.85, 50.0, "nvlink4"},
    DeviceLine{"h20-141gb", 139.8, 44.0, 148.0, 148.0, 4800.0, 0.8, 2.6, 0.85, 50.0, "nvlink4"},
    DeviceLine{"b200-180gb", 178.4, 80.0, 2250.0, 2250.0, 8000.0, 0.48, 24.0, 0.85, 50.0, "nvlink5"},
    DeviceLine{"b300-288gb", 267.69, 75.0, 2250.0, 2250.0, 8000.0, 0.48, 24.0, 0.85, 50.0, "nvlink5"},
    DeviceLine{"gb200-186gb", 184.31, 80.0, 2500.0, 2500.0, 8000.0, 0.48, 26.0, 0.85, 180.0, "nvlink5", kNvl72},
    DeviceLine{"gb300-288gb", 276.5, 80.0, 2500.0, 2500.0, 8000.0, 0.57, 31.0, 0.85, 180.0, "nvlink5", kNvl72},
    DeviceLine{"t4-16gb", 14.58, 8.1, 65.0, 0.0, 320.0, 0.4, 0.57, 0.85, 12.0, "pcie3"},
    DeviceLine{"l4-24gb", 22.2, 30.3, 121.0, 121.0, 300.0, 0.5, 1.3, 0.85, 25.0, "pcie4"},
    DeviceLine{"l40s-48gb", 44.45, 91.6, 362.0, 362.0, 864.0, 0.6, 4.8, 0.85, 25.0, "pcie4"},
    DeviceLine{"a10-24gb", 22.2, 31.2, 125.0, 125.0, 600.0, 0.6, 1.7, 0.85, 25.0, "pcie4"},
    DeviceLine{"a10g-24gb", 22.2, 31.2, 70.0, 70.0, 600.0, 0.65, 1.0, 0.85, 25.0, "pcie4"},
    DeviceLine{"a6000-48gb", 47.5, 38.7, 154.8, 154.8, 768.0, 0.6, 2.0, 0.85, 25.0, "pcie4"},
    DeviceLine{"rtx6000ada-48gb", 47.5, 91.1, 364.2, 364.2, 960.0, 0.6, 4.8, 0.85, 25.0, "pcie4"},
    DeviceLine{"rtxpro6000-96gb", 94.97, 125.0, 503.8, 503.8, 1792.0, 0.65, 7.2, 0.85, 50.0, "pcie5"},
    DeviceLine{"rtx4090-24gb", 23.65, 82.6, 165.2, 165.2, 1008.0, 0.85, 3.1, 0.85, 25.0, "pcie4"},
    DeviceLine{"rtx5090-32gb", 31.37, 104.8, 209.5, 209.5, 1792.0, 0.85, 3.9, 0.85, 50.0, "pcie5"},
    DeviceLine{"mi300x-192gb", 191.5, 163.4, 1307.4, 1307.4, 5300.0, 0.45, 13.0, 0.85, 50.0, "xgmi-mi300x"},
    DeviceLine{"mi325x-256gb", 255.5, 163.4, 1307.4, 1307.4, 6000.0, 0.45, 13.0, 0.85, 50.0, "xgmi-mi300x"},
    DeviceLine{"mi355x-288gb", 287.98, 157.3, 2516.6, 2516.6, 8000.0, 0.45, 25.0, 0.85, 50.0, "xgmi-mi355x"},
};

// Products in fp8, with sums in fp32, run at twice the rate of bf16 on devices that have them (data sheets: Hopper,
// Blackwell, Ada Lovelace, MI300, MI350). Those in fp4 run at four times that rate on Blackwell and MI350, on the
// B300's and the RTX 5090's tensor cores at six and eight times.
double fp8_times(std::string_view id) {
  for (const char* prefix : {"h100", "h200", "h800", "h20", "b200", "b300", "gb200", "gb300", "l4", "rtx", "mi3"}) {
    if (id.starts_with(prefix)) return 2.0;
  }
  return 0.0;
}

double fp4_times(std::string_view id) {
  if (id.starts_with("b300") || id.starts_with("gb300")) return 6.0;
  if (id.starts_with("rtx5090")) return 8.0;
  const bool has =
      id.starts_with("b200") || id.starts_with("gb200") || id.starts_with("rtxpro") || id.starts_with("mi355");
  return has ? 4.0 : 0.0;
}

// FlashAttention-2, forward and backward, reaches up to 187 TFLOP/s on an A100 with a causal mask and 335 on an H100,
// whose tensor cores it does not use asynchronously (Dao 2023, figures 5 and 7). Devices after Hopper are treated like
// it; for others, and the H20 with its few tensor cores, the fraction follows from their matrix products.
double attention_fraction(const DeviceLine& line) {
  if (line.id.starts_with("a100") || line.id.starts_with("a800")) return 0.58;
  const bool is_like_h100 = line.id.starts_with("h") || line.id.starts_with("b") || line.id.starts_with("gb");
  if (is_like_h100 && !line.id.starts_with("h20-")) return 0.335;
  return 0.75 * line.gemm_fraction;
}

// cuDNN's on Hopper and Blackwell: see kVendorHalfTokens in cost/machine.cpp.
double vendor_attention_fraction(std::string_view id) {
  for (const char* prefix : {"b200", "b300", "gb200", "gb300"}) {
    if (id.starts_with(prefix)) return 0.668;
  }
  for (const char* prefix : {"h100", "h200", "h800"}) {
    if (id.starts_with(prefix)) return 0.602;
  }
  return 0.0;
}

DeviceSpec device_from(const DeviceLine& line) {
  DeviceSpec device;
  device.id = line.id;
  device.memory = from_gib(line.memory_gib);
  device.fp32_flops_per_s = line.fp32_tflops * kTera;
  device.fp16_flops_per_s = line.fp16_tflops * kTera;
  device.bf16_flops_per_s = line.bf16_tflops * kTera;
  device.fp8_flops_per_s = fp8_times(line.id) * device.bf16_flops_per_s;
  device.fp4_flops_per_s = fp4_times(line.id) * device.bf16_flops_per_s;
  device.memory_bytes_per_s = line.memory_gb_per_s * kGiga;
  device.gemm_fraction = line.gemm_fraction;
  device.gemm_half_flops = line.half_gflop * kGiga;
  device.attention_fraction = attention_fraction(line);
  device.vendor_attention_fraction = vendor_attention_fraction(line.id);
  device.memory_fraction = line.memory_fraction;
  device.host_bytes_per_s = line.host_gb_per_s * kGiga;
  device.interconnect = line.interconnect;
  device.domain = line.domain;
  return device;
}

// Names as the driver reports them (nvidia-smi -L, rocm-smi), without the manufacturer's; ids of the table above.
struct NamedGpu {
  std::string_view name;
  const char* id;
};
constexpr std::array kGpus = {NamedGpu{"V100-PCIE-16GB", "v100-16gb-pcie"},
                              NamedGpu{"V100-SXM2-16GB", "v100-16gb"},
                              NamedGpu{"V100-SXM2-32GB", "v100-32gb"},
                              NamedGpu{"V100-SXM3-32GB", "v100-32gb"},
                              NamedGpu{"A100-PCIE-40GB", "a100-40gb-pcie"},
                              NamedGpu{"A100-SXM4-40GB", "a100-40gb"},
                              NamedGpu{"A100 80GB PCIe", "a100-80gb-pcie"},
                              NamedGpu{"A100-SXM4-80GB", "a100-80gb"},
                              NamedGpu{"A800 80GB PCIe", "a800-80gb-pcie"},
                              NamedGpu{"A800-SXM4-80GB", "a800-80gb"},
                              NamedGpu{"H100 PCIe", "h100-80gb-pcie"},
                              NamedGpu{"H100 80GB HBM3", "h100-80gb"},
                              NamedGpu{"GH200 480GB", "h100-96gb"},
                              NamedGpu{"H200", "h200-141gb"},
                              NamedGpu{"H800", "h800-80gb"},
                              NamedGpu{"H20", "h20-96gb"},
                              NamedGpu{"H20-3e", "h20-141gb"},
                              NamedGpu{"B200", "b200-180gb"},
                              NamedGpu{"B300 SXM6 AC", "b300-288gb"},
                              NamedGpu{"GB200", "gb200-186gb"},
                              NamedGpu{"GB300", "gb300-288gb"},
                              NamedGpu{"T4", "t4-16gb"},
                              NamedGpu{"L4", "l4-24gb"},
                              NamedGpu{"L40S", "l40s-48gb"},
                              NamedGpu{"A10", "a10-24gb"},
                              NamedGpu{"A10G", "a10g-24gb"},
                              NamedGpu{"RTX A6000", "a6000-48gb"},
                              NamedGpu{"RTX 6000 Ada Generation", "rtx6000ada-48gb"},
                              NamedGpu{"RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000-96gb"},
                              NamedGpu{"RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtxpro6000-96gb"},
                              NamedGpu{"RTX PRO 6000 Blackwell Server Edition", "rtxpro6000-96gb"},
                              NamedGpu{"GeForce RTX 4090", "rtx4090-24gb"},
                              NamedGpu{"GeForce RTX 5090", "rtx5090-32gb"},
                              NamedGpu{"Instinct MI300X", "mi300x-192gb"},
                              NamedGpu{"Instinct MI325X", "mi325x-256gb"},
                              NamedGpu{"Instinct MI355X", "mi355x-288gb"}};

// What people and schedulers write in addition. "A100" and "V100" are not here: they do not say how much memory.
constexpr std::array kAlsoCalled = {NamedGpu{"H100", "h100-80gb"},
                                    NamedGpu{"H100 SXM", "h100-80gb"},
                                    NamedGpu{"H100 SXM5 80GB", "h100-80gb"},
                                    NamedGpu{"GH200", "h100-96gb"},
                                    NamedGpu{"H200 SXM 141GB", "h200-141gb"},
                                    NamedGpu{"A800", "a800-80gb"},
                                    NamedGpu{"B200 SXM 180GB", "b200-180gb"},
                                    NamedGpu{"B300", "b300-288gb"},
                                    NamedGpu{"GB200 NVL72", "gb200-186gb"},
                                    NamedGpu{"GB300 NVL72", "gb300-288gb"},
                                    NamedGpu{"A6000", "a6000-48gb"},
                                    NamedGpu{"RTX 6000 Ada", "rtx6000ada-48gb"},
                                    NamedGpu{"RTX PRO 6000", "rtxpro6000-96gb"},
                                    NamedGpu{"RTX PRO 6000 Blackwell", "rtxpro6000-96gb"},
                                    NamedGpu{"RTX 4090", "rtx4090-24gb"},
                                    NamedGpu{"RTX 5090", "rtx5090-32gb"},
                                    NamedGpu{"MI300X", "mi300x-192gb"},
                                    NamedGpu{"MI325X", "mi325x-256gb"},
                                    NamedGpu{"MI355X", "mi355x-288gb"}};

constexpr std::array<std::string_view, 3> kMakers = {"nvidia", "amd", "tesla"};

// "NVIDIA A100-SXM4-80GB" and "nvidia_a100_sxm4_80gb" are "a100sxm480gb".
std::string bare_name(std::string_view name) {
  std::string bare = lower_case(name);
  std::erase_if(bare, [](unsigned char letter) { return std::isalnum(letter) == 0; });
  for (const std::string_view maker : kMakers) {
    if (bare.starts_with(maker)) bare.erase(0, maker.size());
  }
  return bare;
}

template <class Names>
const char* id_of_bare(const Names& names, const std::string& bare) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const NamedGpu& gpu) { return bare_name(gpu.name) == bare; });
  return found == names.end() ? nullptr : found->id;
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

std::string device_id_named(std::string_view name) {
  const std::string bare = bare_name(name);
  for (const DeviceLine& line : kDeviceLines) {
    if (bare_name(line.id) == bare) return std::string(line.id);
  }
  const char* of_driver = id_of_bare(kGpus, bare);
  const char* id = of_driver != nullptr ? of_driver : id_of_bare(kAlsoCalled, bare);
  return id == nullptr ? "" : id;
}

std::optional<std::string> device_id_of(std::string_view driver_name, Bytes memory) {
  constexpr double kTolerance = 0.05;
  const char* id = id_of_bare(kGpus, bare_name(driver_name));
  if (id == nullptr) return std::nullopt;
  const auto expected = static_cast<double>(device_of(id, "GPU").memory.count);
  const bool is_whole = std::abs(static_cast<double>(memory.count) / expected - 1.0) <= kTolerance;
  return is_whole ? std::optional<std::string>(id) : std::nullopt;
}

}  // namespace krigtune::workload
