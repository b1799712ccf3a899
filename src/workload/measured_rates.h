#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "workload/hardware.h"
#include "workload/measured_machine.h"

/// What krigtune-bench --measure-rates measures: the times of single products, copies and collectives on a machine, or
/// on all ranks of a job. `krigtune doctor --measure` reads it.
namespace krigtune::workload {

/// How long the ranks took for the same work at the same time.
struct RankTimes {
  double median_s = 0.0;          ///< median rank; of two ranks the faster one
  double slowest_s = 0.0;         ///< slowest rank
  std::int64_t slowest_rank = 0;  ///< its index; the first of several
};
/// Summarises `seconds`, one entry per rank, at least one.
RankTimes rank_times(const std::vector<double>& seconds);

/// A product of rows x depth by depth x cols, all in one precision.
struct MeasuredProduct {
  Precision precision = Precision::kFp32;
  std::int64_t rows = 1, cols = 1, depth = 1;
  RankTimes times;

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(depth);
  }
};

/// kMemory: within the memory that a rank computes in. The others: between a GPU and pinned memory of its host.
enum class CopyKind : std::uint8_t { kMemory, kToDevice, kToHost };

struct MeasuredCopy {
  CopyKind kind = CopyKind::kMemory;
  std::int64_t bytes = 1;  ///< bytes that arrive
  RankTimes times;
};

/// The ranks that take part in a collective.
enum class RankScope : std::uint8_t {
  kNode,    ///< the ranks of one node, on all nodes at once
  kAcross,  ///< one rank of each node: the first ranks of all nodes, the second ranks, ..., at once
  kAll      ///< all ranks of the job
};

struct MeasuredCollective {
  ExchangeKind kind = ExchangeKind::kAllReduce;
  RankScope scope = RankScope::kAll;
  std::int64_t ranks = 2, nodes = 1;  ///< in one group
  std::int64_t bytes = 1;             ///< S as in nccl-tests: the whole range, for every kind of collective
  double seconds = 1.0;               ///< mean over the ranks

  double alg_bytes_per_s() const { return static_cast<double>(bytes) / seconds; }
  /// Returns the bytes that a rank sends: (n - 1) / n S, and twice that for an all-reduce.
  double wire_bytes() const;
  /// Returns nccl-tests' busbw: the bytes that a rank sends divided by the time (doc/PERFORMANCE.md of
  /// NVIDIA/nccl-tests).
  double bus_bytes_per_s() const { return wire_bytes() / seconds; }
};

struct MeasuredRates {
  std::string version;              ///< version of krigtune
  std::string device = "cpu";       ///< cpu, cuda
  std::string processor;            ///< the system's or driver's name of what rank 0 computes on
  std::int64_t memory_bytes = 0;    ///< of one rank: memory of its GPU, or its share of the node's memory
  std::int64_t taken_bytes = 0;     ///< GPUs: of that memory, by CUDA's context, the libraries and NCCL; 0: not known
  std::string started_by;           ///< "alone", "mpirun", "torchrun's variables", "srun"
  std::string emulated_network;     ///< label of the network; empty if the collectives were not emulated
  std::vector<std::string> hosts;   ///< for each node: name of its machine
  std::vector<std::int64_t> nodes;  ///< for each rank: index of its node
  std::vector<MeasuredProduct> products;
  std::vector<MeasuredCopy> copies;
  std::vector<MeasuredCollective> collectives;

  std::int64_t ranks() const { return static_cast<std::int64_t>(nodes.size()); }
  std::int64_t ranks_per_node() const;  ///< on the node with the fewest ranks
};

const char* to_string(CopyKind kind);
const char* to_string(RankScope scope);

nlohmann::ordered_json to_json(const MeasuredRates& rates);
/// Throws UserError for any other document.
MeasuredRates read_measured_rates(const nlohmann::ordered_json& json, const std::string& source);

/// Writes tables in nccl-tests' form: "#" lines are comments, times are in us, algbw and busbw in GB/s (1e9 bytes/s).
std::string rates_text(const MeasuredRates& rates);

}  // namespace krigtune::workload
