#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "krigtune/core/units.h"

namespace krigtune {

/// What one rank computes on: a GPU of the table, of the user's own file, or this machine as it was measured. Rates are
/// of dense numbers. The table (experiments/data/gpus.csv) names its sources.
struct DeviceSpec {
  std::string id;  ///< "a100-80gb"
  Bytes memory;    ///< that a program sees, not the marketing number
  // FLOPs a second at the most; 0: not supported.
  double fp32_flops_per_s = 0.0;
  double fp16_flops_per_s = 0.0;
  double bf16_flops_per_s = 0.0;
  double memory_bytes_per_s = 0.0;
  double gemm_fraction = 0.7;       ///< of the peak that large matrix products reach in a training step
  double gemm_half_flops = 5e9;     ///< a product of so many FLOPs reaches half of that
  double attention_fraction = 0.5;  ///< of the peak that flash attention reaches, its causal half counted
  double memory_fraction = 0.85;    ///< of the memory's rate that elementwise kernels reach
  double launch_s = 5e-6;           ///< of one kernel
  double host_bytes_per_s = 0.0;    ///< between device and host memory, a direction
  std::string interconnect;         ///< the links within a node that it usually comes with, an id of network_names()

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

/// Ids that "gpu" knows beside "local".
std::vector<std::string> device_names();

/// Of the table, case-insensitive. Throws UserError that begins with `where` and ends with the nearest id.
DeviceSpec device_of(const std::string& id, const std::string& where);

/// The id of a GPU as its driver names it: "NVIDIA H100 80GB HBM3". Empty for one that the table has not, and for a
/// part of one (MIG), which has its name and not its memory, nor its speed.
std::optional<std::string> device_id_of(std::string_view driver_name, Bytes memory);

}  // namespace krigtune
