#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "workload/hardware.h"

namespace krigtune::workload {

/// The conditions under which a measurement of this machine is valid.
struct MachineKey {
  std::string host;
  std::string processor;    ///< "AMD EPYC"
  std::string vector_unit;  ///< avx512, avx2, plain
  std::string version;      ///< of krigtune
  std::int64_t cores = 1;   ///< cores that this process may use
  std::int64_t ranks = 1;
  Precision precision = Precision::kFp32;

  friend bool operator==(const MachineKey&, const MachineKey&) = default;
};
/// Returns the key of the machine that this process runs on.
MachineKey machine_key(std::int64_t ranks, Precision precision);

/// Collectives as MeasuredMachine distinguishes them.
enum class ExchangeKind : std::uint8_t { kAllReduce, kReduceScatter, kAllGather };
inline constexpr int kExchangeKindCount = 3;

/// `"gpu": "local"` as measured by krigtune-bench --measure-machine: each rank is a few threads that share its part of
/// the cores.
struct MeasuredMachine {
  MachineKey key;
  ClassRates rates;                                     ///< of a rank with its own core, while all ranks compute
  std::array<ClassRate, kExchangeKindCount> exchanges;  ///< core time of a collective, by the bytes that a rank sends
  double wake_s = 0.0;                                  ///< seconds until a thread that waited for another continues
  /// Slowdown of kernels beside a collective that has its own core.
  double overlap_slowdown = 1.0;
  double step_overhead_s = 0.0;

  double cores_per_rank() const { return static_cast<double>(key.cores) / static_cast<double>(key.ranks); }
};

nlohmann::ordered_json to_json(const MeasuredMachine& machine);
/// Throws UserError for any other document.
MeasuredMachine read_measured_machine(const nlohmann::ordered_json& json, const std::string& source,
                                      const std::string& pointer);

}  // namespace krigtune::workload
