#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"

namespace krigtune::machine {

/// The parts of a machine that checks read; tests provide their own.
struct MachineView {
  std::filesystem::path root = "/";  ///< root of /proc and /sys
  /// Returns an environment variable; empty if it is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  /// Returns a program's output; empty if the program does not exist or fails.
  std::function<std::optional<std::string>(const std::vector<std::string>& argv)> output;
  int cores = 1;         ///< of the machine
  int usable_cores = 1;  ///< cores on which this process may run
  /// 10000 major + 100 minor + patch since 2.9 (nccl.h, NCCL_VERSION); 0: version unknown; empty: there is no NCCL.
  std::optional<int> nccl_version = {};
  std::optional<std::int64_t> shm_bytes = {};  ///< size of /dev/shm; empty: there is none

  /// Returns the first line of a file below root, trimmed; "" if it cannot be read.
  std::string line(const std::filesystem::path& path) const;
  /// Returns the whole file.
  std::string text(const std::filesystem::path& path) const;
  /// Returns the entries of a folder below root, by name.
  std::vector<std::string> entries(const std::filesystem::path& folder) const;
};

/// Returns the machine that this process runs on. Programs are stopped after ten seconds. `clock` must outlive it.
MachineView this_machine(const Clock& clock);

/// One GPU as nvidia-smi describes it; the fields are named as in --query-gpu.
struct GpuState {
  std::string index, name, driver_version;
  std::optional<int> pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML's bits
};

/// Returns the query whose answer parse_gpu_states reads.
std::vector<std::string> gpu_query();
/// Parses the answer, which has no header and no units. Fields that a GPU does not report ("[N/A]") stay empty.
std::vector<GpuState> parse_gpu_states(const std::string& csv);

/// Parses a matrix printed by `nvidia-smi topo -m` or `topo -p2p r`: for each pair of GPUs, once, the text of its cell.
/// Everything else (network cards, affinities, the legend) is ignored.
std::map<std::pair<std::string, std::string>, std::string> parse_gpu_matrix(const std::string& text);

}  // namespace krigtune::machine
