#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace krigtune {

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

}  // namespace krigtune
