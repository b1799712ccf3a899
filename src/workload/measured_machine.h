#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "workload/hardware.h"

namespace krigtune::workload {

/// What a measurement of this machine holds for.
struct MachineKey {
  std::string host;
  std::string processor;    ///< "AMD EPYC"
  std::string vector_unit;  ///< avx512, avx2, plain
  std::string version;      ///< of krigtune
  std::int64_t cores = 1;   ///< that this process may use
  std::int64_t ranks = 1;
  Precision precision = Precision::kFp32;

  friend bool operator==(const MachineKey&, const MachineKey&) = default;
};
/// Of the machine that this runs on.
MachineKey machine_key(std::int64_t ranks, Precision precision);

/// Collectives as MeasuredMachine counts them.
enum class ExchangeKind : std::uint8_t { kAllReduce, kReduceScatter, kAllGather };
inline constexpr int kExchangeKindCount = 3;

/// `"gpu": "local"` as krigtune-bench --measure-machine has found it: a rank is a few threads that share its part of
/// the cores.
struct MeasuredMachine {
  MachineKey key;
  ClassRates rates;                                     ///< of a rank with a core of its own, while all ranks compute
  std::array<ClassRate, kExchangeKindCount> exchanges;  ///< core time of a collective, by the bytes that a rank sends
  double wake_s = 0.0;                                  ///< until a thread that waited for another goes on
  double overlap_slowdown = 1.0;                        ///< of kernels beside a collective that has a core of its own
  double step_overhead_s = 0.0;

  double cores_per_rank() const { return static_cast<double>(key.cores) / static_cast<double>(key.ranks); }
};

nlohmann::ordered_json to_json(const MeasuredMachine& machine);
/// Throws UserError for what is no such document.
MeasuredMachine read_measured_machine(const nlohmann::ordered_json& json, const std::string& source,
                                      const std::string& pointer);

}  // namespace krigtune::workload
