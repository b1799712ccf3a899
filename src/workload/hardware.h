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

/// What a message passes on its way to the next rank.
enum class Hop { kNvlink, kPci, kNetwork };
struct NetworkLevel {
  std::string name;
  Hop hop = Hop::kNetwork;
  double latency_s = 0.0;    ///< of a network card
  double bytes_per_s = 0.0;  ///< that collectives reach, a direction and rank

  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};
/// Links within nodes and between them, for rings as NCCL builds them (plan/collective_time.h).
struct NodeNetwork {
  NetworkLevel intra, inter;
  std::int64_t ranks_per_node = 1;
};

/// A network that krigtune-bench imitates: each collective is held for latency + bytes / bandwidth, or for what
/// collective_time_s says where it has nodes; then the first two numbers are those of its slower level.
struct EmulatedNetwork {
  std::string name;  ///< for labels: an id, two ids "nvlink4 + ib-hdr-200", or the numbers: "100 us + 250 MB/s"
  double latency_s = 0.0;
  double bytes_per_s = 0.0;
  std::optional<NodeNetwork> nodes{};
};

/// Ids that "interconnect", "network" and "emulate_network" know.
std::vector<std::string> network_names();

enum class Precision { kFp32, kFp16, kBf16 };

/// "fp32", "fp16" or "bf16", as in a session and on the command line.
constexpr const char* to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : precision == Precision::kFp16 ? "fp16" : "bf16";
}

/// Operations that share a rate. Collectives are none of them.
enum class OpClass : std::uint8_t {
  kProduct,    ///< matrix products
  kAttention,  ///< its core
  kMemory,     ///< elementwise kernels, norms, losses: bound by bytes
  kOptimizer,  ///< updates on the device, norms of gradients
  kCopy,       ///< between device and host
  kHost        ///< what the host computes: offloaded optimizers
};
inline constexpr int kOpClassCount = 6;
const char* to_string(OpClass of);  ///< product, attention, memory, optimizer, copy, host

/// t = launch + max((F + half) / rate, bytes / bandwidth): a product of `half_flops` reaches half the rate.
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
