#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "workload/hardware.h"
#include "workload/measured_machine.h"

/// What krigtune-bench --measure-rates finds: how long single products, copies and collectives take on a machine, or on
/// all ranks of a job. `krigtune doctor --measure` reads it.
namespace krigtune::workload {

/// How long ranks took for the same work at the same time.
struct RankTimes {
  double median_s = 0.0;          ///< of the rank in the middle, of two the faster one
  double slowest_s = 0.0;         ///< the longest
  std::int64_t slowest_rank = 0;  ///< who took it; the first of several
};
/// `seconds`: by rank, at least one.
RankTimes rank_times(const std::vector<double>& seconds);

/// rows x depth times depth x cols, all in one precision.
struct MeasuredProduct {
  Precision precision = Precision::kFp32;
  std::int64_t rows = 1, cols = 1, depth = 1;
  RankTimes times;

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(depth);
  }
};

/// kMemory: within the memory that a rank computes in; the others: between a GPU and pinned memory of its host.
enum class CopyKind : std::uint8_t { kMemory, kToDevice, kToHost };

struct MeasuredCopy {
  CopyKind kind = CopyKind::kMemory;
  std::int64_t bytes = 1;  ///< that arrive
  RankTimes times;
};

/// Which ranks a collective is among.
enum class RankScope : std::uint8_t {
  kNode,    ///< those of one node, on all nodes at once
  kAcross,  ///< one of each node: the first of all nodes, the second of all nodes, ..., at once
  kAll      ///< all ranks of the job
};

struct MeasuredCollective {
  ExchangeKind kind = ExchangeKind::kAllReduce;
  RankScope scope = RankScope::kAll;
  std::int64_t ranks = 2, nodes = 1;  ///< of one group
  std::int64_t bytes = 1;             ///< S, as nccl-tests counts it: the whole range, whatever the collective
  double seconds = 1.0;               ///< mean over ranks

  double alg_bytes_per_s() const { return static_cast<double>(bytes) / seconds; }
  /// That a rank sends: (n - 1) / n S, twice that for an all-reduce.
  double wire_bytes() const;
  /// nccl-tests' busbw: what a rank sends over the time (doc/PERFORMANCE.md of NVIDIA/nccl-tests).
  double bus_bytes_per_s() const { return wire_bytes() / seconds; }
};

struct MeasuredRates {
  std::string version;              ///< of krigtune
  std::string device = "cpu";       ///< cpu, cuda
  std::string processor;            ///< as the system or the driver names what rank 0 computes on
  std::int64_t memory_bytes = 0;    ///< of one rank: of its GPU, or its part of the node's memory
  std::string started_by;           ///< "alone", "mpirun", "torchrun's variables", "srun"
  std::string emulated_network;     ///< its label; empty: collectives really took so long
  std::vector<std::string> hosts;   ///< by node: the name of its machine
  std::vector<std::int64_t> nodes;  ///< by rank: on which node it is
  std::vector<MeasuredProduct> products;
  std::vector<MeasuredCopy> copies;
  std::vector<MeasuredCollective> collectives;

  std::int64_t ranks() const { return static_cast<std::int64_t>(nodes.size()); }
  std::int64_t ranks_per_node() const;  ///< on the node with the fewest
};

const char* to_string(CopyKind kind);
const char* to_string(RankScope scope);

nlohmann::ordered_json to_json(const MeasuredRates& rates);
/// Throws UserError for what is no such document.
MeasuredRates read_measured_rates(const nlohmann::ordered_json& json, const std::string& source);

/// As tables in nccl-tests' form: "#" lines are comments, time in us, algbw and busbw in GB/s (1e9 bytes a second).
std::string rates_text(const MeasuredRates& rates);

}  // namespace krigtune::workload
