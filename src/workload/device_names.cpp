#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "krigtune/workload/device.h"

namespace krigtune {
namespace {

// Names as the driver (nvidia-smi -L) gives them, without the maker's; ids of workload/devices.cpp.
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
                              NamedGpu{"H100 PCIe", "h100-80gb-pcie"},
                              NamedGpu{"H100 80GB HBM3", "h100-80gb"},
                              NamedGpu{"GH200 480GB", "h100-96gb"},
                              NamedGpu{"H200", "h200-141gb"},
                              NamedGpu{"B200", "b200-180gb"},
                              NamedGpu{"L4", "l4-24gb"},
                              NamedGpu{"L40S", "l40s-48gb"},
                              NamedGpu{"A10", "a10-24gb"},
                              NamedGpu{"A10G", "a10g-24gb"},
                              NamedGpu{"GeForce RTX 4090", "rtx4090-24gb"}};

}  // namespace

std::optional<std::string> device_id_of(std::string_view driver_name, Bytes memory) {
  constexpr double kTolerance = 0.05;
  for (const std::string_view maker : {"NVIDIA ", "Tesla "}) {
    if (driver_name.rfind(maker, 0) == 0) driver_name.remove_prefix(maker.size());
  }
  const auto found =
      std::find_if(kGpus.begin(), kGpus.end(), [&](const NamedGpu& gpu) { return gpu.name == driver_name; });
  if (found == kGpus.end()) return std::nullopt;
  const auto expected = static_cast<double>(device_of(found->id, "GPU").memory.count);
  const bool is_whole = std::abs(static_cast<double>(memory.count) / expected - 1.0) <= kTolerance;
  return is_whole ? std::optional<std::string>(found->id) : std::nullopt;
}

}  // namespace krigtune
