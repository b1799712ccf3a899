#pragma once
#include <cstdint>
#include <string>

namespace krigtune {

/// What the CUDA driver says. Asked at run time: no program but krigtune-bench-cuda is linked with anything of CUDA.
struct GpuProbe {
  int gpus = 0;
  std::string name;               ///< of the first one, as "NVIDIA H100 80GB HBM3"; empty: the driver does not say
  std::int64_t memory_bytes = 0;  ///< of the smallest one; 0: the driver does not say
  int driver_version = 0;         ///< 1000 major + 10 minor of the CUDA that it knows; 0: no driver
  std::string reason;             ///< why there are no GPUs; empty otherwise
  bool broken = false;            ///< there is a driver, and it does not start
};
GpuProbe probe_gpus();

/// Why this build has no krigtune-bench-cuda, and what to do; empty if it has one.
std::string no_cuda_reason();

}  // namespace krigtune
