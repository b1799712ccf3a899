#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace krigtune::engine {

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

/// Of a GPU's memory, where nobody sets a limit: the rest is left to the context, the libraries and NCCL.
inline constexpr double kMemoryForPlans = 0.95;

/// Why this build has no krigtune-bench-cuda, and what to do; empty if it has one.
std::string no_cuda_reason();

/// Why krigtune-bench-cuda, which lies at `program`, cannot start (a library that is missing, with what helps); empty
/// if it can. Starts it with --version: 0.1 s.
std::string cuda_start_failure(const std::filesystem::path& program);

}  // namespace krigtune::engine
