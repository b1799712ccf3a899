#pragma once
#include <cstdint>
#include <string>

namespace krigtune::workload {

/// The GPUs of this node, as its driver tells them.
struct NodeGpus {
  int count = 0;
  std::string name;               ///< of the first one, as "NVIDIA H100 80GB HBM3"; empty: not known
  std::int64_t memory_bytes = 0;  ///< of the smallest one; 0: not known
};

}  // namespace krigtune::workload
