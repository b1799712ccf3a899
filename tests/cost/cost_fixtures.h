#pragma once
#include <cstdint>

#include "cost/machine.h"
#include "workload/workload.h"

namespace krigtune {

/// Nodes of eight GPUs of no stated kind.
inline workload::ClusterSpec gpus(std::int64_t nodes) {
  workload::ClusterSpec cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = 8;
  return cluster;
}

/// Nodes of eight ranks on which only collectives take time, at these rates for each rank.
inline cost::Machine links_of(double bytes_per_s, double bytes_per_s_between_nodes) {
  cost::Machine machine;
  machine.network.nodes = workload::NodeNetwork{};
  machine.network.nodes->ranks_per_node = 8;
  machine.network.nodes->intra.bytes_per_s = bytes_per_s;
  machine.network.nodes->inter.bytes_per_s = bytes_per_s_between_nodes;
  machine.ranks_per_node = 8;
  return machine;
}

}  // namespace krigtune
