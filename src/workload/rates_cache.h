#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "workload/measured_rates.h"

/// Rates of this machine's GPUs, which are measured once: krigtune doctor --measure keeps them, and plan and tune read
/// them.
namespace krigtune::workload {

/// GPUs of which the same rates are expected.
struct GpuKey {
  std::string name;    ///< as the driver gives it
  std::string driver;  ///< its version
  std::int64_t ranks = 1;
};

/// Returns the version of the driver's kernel module that /proc below `root` tells, "580.82.07"; if there is none, the
/// CUDA version that the driver knows (1000 major + 10 minor), "CUDA 13.0".
std::string driver_version(int cuda_version, const std::filesystem::path& root = "/");

struct KeptRates {
  MeasuredRates rates;
  std::string measured_at;  ///< local time
};
/// Returns what was kept in the directory for these GPUs. Empty if there is nothing, or nothing that this version can
/// read; also if `cache` is empty.
std::optional<KeptRates> kept_rates(const std::filesystem::path& cache, const GpuKey& key);

/// Keeps the rates in the directory, which it makes, in place of earlier ones. Throws EnvironmentError and UserError if
/// it cannot.
void keep_rates(const std::filesystem::path& cache, const GpuKey& key, const KeptRates& kept);

}  // namespace krigtune::workload
