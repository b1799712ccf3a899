#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/clock.h"
#include "workload/workload.h"

namespace krigtune::runner {

/// How `"gpu": "local"` becomes numbers.
struct LocalMachineOptions {
  std::filesystem::path bench;                                              ///< krigtune-bench
  std::filesystem::path cache;                                              ///< directory; see core/files.h
  bool fresh = false;                                                       ///< measure anew
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< what takes a while, and warnings
};

/// This machine for so many ranks: from the cache, or measured by krigtune-bench --measure-machine and cached. A cache
/// that cannot be read or written costs the measurement, nothing else. Throws EnvironmentError if it cannot be
/// measured.
workload::MeasuredMachine local_machine(std::int64_t ranks, workload::Precision precision,
                                        const LocalMachineOptions& options, const Clock& clock);

/// What an earlier measurement left in the cache; empty where there is none of this machine.
std::optional<workload::MeasuredMachine> earlier_local_machine(std::int64_t ranks, workload::Precision precision,
                                                               const std::filesystem::path& cache);

}  // namespace krigtune::runner
