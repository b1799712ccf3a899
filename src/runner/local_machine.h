#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/clock.h"
#include "workload/workload.h"

namespace krigtune::runner {

/// How to obtain the rates of `"gpu": "local"`.
struct LocalMachineOptions {
  std::filesystem::path bench;                                              ///< krigtune-bench
  std::filesystem::path cache;                                              ///< directory; see core/files.h
  bool fresh = false;                                                       ///< measure again
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< reports long operations and warnings
};

/// Returns this machine's rates for `ranks`, from the cache or measured by krigtune-bench --measure-machine and then
/// cached. If the cache cannot be read or written, the machine is measured. Throws EnvironmentError if it cannot be
/// measured.
workload::MeasuredMachine local_machine(std::int64_t ranks, workload::Precision precision,
                                        const LocalMachineOptions& options, const Clock& clock);

/// Returns an earlier measurement from the cache; empty if there is none of this machine.
std::optional<workload::MeasuredMachine> earlier_local_machine(std::int64_t ranks, workload::Precision precision,
                                                               const std::filesystem::path& cache);

}  // namespace krigtune::runner
