#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace krigtune::engine {

/// What the CUDA driver reports about the GPUs of this machine. It is loaded at run time, because only
/// krigtune-bench-cuda is linked with CUDA.
struct GpuProbe {
  int gpus = 0;
  std::string name;  ///< of the first one, such as "NVIDIA H100 80GB HBM3"; empty if the driver does not say
  std::int64_t memory_bytes = 0;  ///< of the smallest one; 0 if the driver does not say
  int driver_version = 0;         ///< 1000 major + 10 minor of the CUDA version that it supports; 0: no driver
  std::string reason;             ///< why there are no GPUs; empty otherwise
  bool broken = false;            ///< there is a driver, but it does not start
};
GpuProbe probe_gpus();

/// The fraction of a GPU's memory that plans may use if nobody sets a limit. The remainder is for the context, the
/// libraries and NCCL.
inline constexpr double kMemoryForPlans = 0.95;
/// What a plan may have of it. `taken_bytes`: what those were found to have, 0 if it is not known; where that and what
/// training adds (32 MiB for cuBLASLt, scratch memory, a captured graph) are more than the rest, plans get less.
std::int64_t memory_for_plans(std::int64_t total_bytes, std::int64_t taken_bytes);

/// Returns why this build has no krigtune-bench-cuda, and what to do. Empty if it has one.
std::string no_cuda_reason();

/// Returns the krigtune-bench-cuda that lies beside a krigtune-bench; it need not exist. Follows links of `bench`.
std::filesystem::path cuda_program_beside(const std::filesystem::path& bench);
/// Returns why there is no krigtune-bench-cuda for the trials of `bench`. What lies beside it decides, and not how this
/// program was built: a bundle or a package can bring the CUDA engine to a build without it.
std::string no_cuda_reason(const std::filesystem::path& bench);

/// Returns why krigtune-bench-cuda, which lies at `program`, cannot start (a missing library, and what helps). Empty if
/// it can. Starts the program with --version, which takes 0.1 s.
std::string cuda_start_failure(const std::filesystem::path& program);

}  // namespace krigtune::engine
