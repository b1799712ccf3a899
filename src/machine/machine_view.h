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

/// What checks look at; tests bring their own.
struct MachineView {
  std::filesystem::path root = "/";  ///< /proc and /sys are sought below it
  /// An environment variable; empty where it is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  /// What a program prints; empty where there is none, or it fails.
  std::function<std::optional<std::string>(const std::vector<std::string>& argv)> output;
  int cores = 1;         ///< of the machine
  int usable_cores = 1;  ///< of those: that this process may run on
  /// 10000 major + 100 minor + patch since 2.9 (nccl.h, NCCL_VERSION); 0: it does not say; empty: there is no NCCL.
  std::optional<int> nccl_version = {};
  std::optional<std::int64_t> shm_bytes = {};  ///< size of /dev/shm; empty: there is none

  /// The first line of a file below root, without blanks at its ends; "" where it cannot be read.
  std::string line(const std::filesystem::path& path) const;
  /// All of it.
  std::string text(const std::filesystem::path& path) const;
  /// The entries of a folder below root, by name.
  std::vector<std::string> entries(const std::filesystem::path& folder) const;
};

/// The machine that this runs on. Programs are given ten seconds. `clock` must outlive it.
MachineView this_machine(const Clock& clock);

/// One GPU as nvidia-smi describes it: by what --query-gpu calls its fields.
struct GpuState {
  std::string index, name, driver_version;
  std::optional<int> pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML's bits
};

/// The query that parse_gpu_states reads.
std::vector<std::string> gpu_query();
/// Its answer, without a header and without units. What a GPU does not tell ("[N/A]") is left out.
std::vector<GpuState> parse_gpu_states(const std::string& csv);

/// A matrix as `nvidia-smi topo -m` and `topo -p2p r` print it: of each pair of GPUs, once, what stands in its cell.
/// Anything else in it (network cards, affinities, the legend) is left out.
std::map<std::pair<std::string, std::string>, std::string> parse_gpu_matrix(const std::string& text);

}  // namespace krigtune::machine
