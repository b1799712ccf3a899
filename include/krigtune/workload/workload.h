#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/units.h"
#include "krigtune/workload/device.h"
#include "krigtune/workload/model.h"

namespace krigtune {

enum class Precision { kFp32, kFp16, kBf16 };
enum class OptimizerKind { kAdamW, kSgd };
/// Whose schedule: kCanonical is reduce-scatter based, as in the ZeRO paper (Rajbhandari et al. 2020), Megatron and
/// FSDP; kDeepSpeed is what DeepSpeed's code does.
enum class Dialect { kCanonical, kDeepSpeed };

/// Whose program trains: its buffers and its schedule (cost/framework.h). kKrigtune is krigtune-bench itself.
enum class Framework { kKrigtune, kDeepSpeed, kFsdp, kMegatron, kNanotron };

/// What is to be trained: the session's block "workload".
struct Workload {
  ModelSpec model;
  Precision precision = Precision::kFp32;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  std::optional<std::int64_t> train_batch_size;  ///< sequences a step; empty: may vary
  Dialect dialect = Dialect::kCanonical;
  double gradient_clipping = 0.0;  ///< largest norm of all gradients; 0: not clipped
  Framework framework = Framework::kKrigtune;
};

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

/// The machines: the session's block "cluster".
struct ClusterSpec {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 2;  ///< with gpu "local" and no GPU: CPU ranks
  std::string gpu = "local";
  std::optional<DeviceSpec> device;      ///< empty: "local" and not measured
  std::optional<NodeNetwork> network{};  ///< real links; empty: "local" and not measured
  std::optional<EmulatedNetwork> emulated_network;

  std::int64_t ranks() const { return nodes * gpus_per_node; }
};

/// Ids that "emulate_network" knows.
std::vector<std::string> network_names();

/// kDeepSpeedAutotuner: the formula of DeepSpeed's autotuner, for comparison.
enum class MemoryModelKind { kKrigtune, kDeepSpeedAutotuner };

/// The session's block "memory".
struct MemorySpec {
  std::optional<double> limit_gib;       ///< per rank; empty: what the device has
  std::optional<double> host_limit_gib;  ///< host memory of a node; empty: no constraint
  double reserve_fraction = 0.05;        ///< not applied where the plan is exact
  MemoryModelKind model = MemoryModelKind::kKrigtune;
};

/// Paths in it are relative to `base_dir`.
Workload read_workload(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir = {});
/// "local" or an object. Throws UserError for devices and networks that are not known.
ClusterSpec read_cluster(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                         const std::filesystem::path& base_dir = {});
MemorySpec read_memory(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer);
nlohmann::ordered_json to_json(const Workload& workload);
nlohmann::ordered_json to_json(const ClusterSpec& cluster);
nlohmann::ordered_json to_json(const MemorySpec& memory);

/// Bytes that one rank may use: the stated limit, else the machine's memory shared by its local ranks.
Bytes memory_limit_per_rank(const MemorySpec& memory, const ClusterSpec& cluster);

}  // namespace krigtune
