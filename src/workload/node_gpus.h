#pragma once
#include <cstdint>
#include <string>

namespace krigtune::workload {

/// The GPUs of this node, as reported by its driver.
struct NodeGpus {
  int count = 0;
  std::string name;               ///< of the first GPU, such as "NVIDIA H100 80GB HBM3"; empty if unknown
  std::int64_t memory_bytes = 0;  ///< of the smallest GPU; 0 if unknown
};

}  // namespace krigtune::workload
