#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace krigtune::workload {

/// What one rank computes on: a GPU of the table or of the user's own file, or this machine as it was measured. Rates
/// are for dense numbers. The table (experiments/data/gpus.csv) names its sources.
struct DeviceSpec {
  std::string id;  ///< "a100-80gb"
  Bytes memory;    ///< memory that a program sees, not the marketing number
  // Peak FLOPs per second; 0: not supported.
  double fp32_flops_per_s = 0.0;
  double fp16_flops_per_s = 0.0;
  double bf16_flops_per_s = 0.0;
  double fp8_flops_per_s = 0.0;  ///< with sums in fp32
  double fp4_flops_per_s = 0.0;  ///< of NVFP4 or MXFP4
  double memory_bytes_per_s = 0.0;
  double gemm_fraction = 0.7;       ///< fraction of the peak that large matrix products reach in a training step
  double gemm_half_flops = 5e9;     ///< a product of this many FLOPs reaches half of that
  double attention_fraction = 0.5;  ///< fraction of the peak that flash attention reaches, with its causal half counted
  /// The same for the vendor's own kernel (cuDNN) and long sequences; 0: as flash attention.
  double vendor_attention_fraction = 0.0;
  double memory_fraction = 0.85;  ///< fraction of the memory's rate that elementwise kernels reach
  double launch_s = 5e-6;         ///< seconds to launch one kernel
  double host_bytes_per_s = 0.0;  ///< between device and host memory, per direction
  std::string interconnect;       ///< id (network_names()) of the usual links within a node
  std::int64_t domain = 0;        ///< GPUs that these links join, if they join several nodes (NVL72: 72)

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

/// Returns the ids that "gpu" accepts in addition to "local".
std::vector<std::string> device_names();

/// Looks up the table, ignoring case. Throws UserError that begins with `where` and ends with the nearest id.
DeviceSpec device_of(const std::string& id, const std::string& where);

/// Returns the id of a GPU as drivers, schedulers and people call it, in any spelling: "NVIDIA H200",
/// "nvidia_geforce_rtx_5090", "MI300X". Empty for a name that is not known or means several ("A100").
std::string device_id_named(std::string_view name);

/// Returns the id of a GPU from its driver's name: "NVIDIA H100 80GB HBM3". Empty for GPUs that are not in the table,
/// and for a part of one (MIG), which has the name but neither the memory nor the speed.
std::optional<std::string> device_id_of(std::string_view driver_name, Bytes memory);

/// The kind of link that a message crosses on its way to the next rank.
enum class Hop { kNvlink, kPci, kNetwork };
struct NetworkLevel {
  std::string name;
  Hop hop = Hop::kNetwork;
  double latency_s = 0.0;    ///< latency of a network card
  double bytes_per_s = 0.0;  ///< rate that collectives reach, per direction and rank

  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};
/// The links within nodes and between them, for rings as NCCL builds them (plan/collective_time.h).
struct NodeNetwork {
  NetworkLevel intra, inter;
  std::int64_t ranks_per_node = 1;
};

/// A network that krigtune-bench emulates: each collective takes latency + bytes / bandwidth or, if `nodes` is set,
/// collective_time_s. The first two numbers are then those of the slower level.
struct EmulatedNetwork {
  std::string name;  ///< for labels: an id, two ids "nvlink4 + ib-hdr-200", or the numbers: "100 us + 250 MB/s"
  double latency_s = 0.0;
  double bytes_per_s = 0.0;
  std::optional<NodeNetwork> nodes{};
};

/// Returns the ids that "interconnect", "network" and "emulate_network" accept.
std::vector<std::string> network_names();

enum class Precision { kFp32, kFp16, kBf16 };

/// Returns "fp32", "fp16" or "bf16", as in a session and on the command line.
constexpr const char* to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : precision == Precision::kFp16 ? "fp16" : "bf16";
}

/// Operations that share a rate; collectives are not among them.
enum class OpClass : std::uint8_t {
  kProduct,    ///< matrix products
  kAttention,  ///< core of the attention
  kMemory,     ///< elementwise kernels, norms, losses: limited by memory bandwidth
  kOptimizer,  ///< updates on the device, norms of gradients
  kCopy,       ///< between device and host
  kHost        ///< computations on the host: offloaded optimizers
};
inline constexpr int kOpClassCount = 6;
const char* to_string(OpClass of);  ///< product, attention, memory, optimizer, copy, host

/// t = launch + max((F + half) / rate, bytes / bandwidth): a product of `half_flops` FLOPs reaches half the rate.
struct ClassRate {
  double launch_s = 0.0;
  double flops_per_s = std::numeric_limits<double>::infinity();
  double half_flops = 0.0;
  double bytes_per_s = std::numeric_limits<double>::infinity();

  double seconds(double flops, double bytes) const;
  friend bool operator==(const ClassRate&, const ClassRate&) = default;
};
using ClassRates = std::array<ClassRate, kOpClassCount>;  ///< by OpClass

}  // namespace krigtune::workload
