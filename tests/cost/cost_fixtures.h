#pragma once
#include <cstdint>

#include "workload/workload.h"

namespace krigtune {

/// Nodes of eight GPUs of no stated kind.
inline workload::ClusterSpec gpus(std::int64_t nodes) {
  workload::ClusterSpec cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = 8;
  return cluster;
}

}  // namespace krigtune
