#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "engine/host/communicator.h"
#include "engine/host/processes.h"
#include "engine/host/thread_communicator.h"
#include "plan/collective_time.h"
#include "workload/measured_rates.h"

namespace krigtune::bench {

/// The places of a job's ranks.
struct JobRanks {
  std::vector<int> nodes;          ///< by rank
  std::vector<std::string> hosts;  ///< by node

  int size() const { return static_cast<int>(nodes.size()); }
  /// Returns the ranks of the group of `rank`, in ascending order and including it.
  std::vector<int> members(workload::RankScope scope, int rank) const;
  /// Returns the scopes that are worth measuring: within a node only if a node has several ranks, between nodes only if
  /// there are several, and among all ranks only if that differs from both.
  std::vector<workload::RankScope> scopes() const;
  /// Returns the span of the group of that rank.
  plan::GroupSpan span(workload::RankScope scope, int rank) const;
};

/// The sizes to measure.
struct RateSizes {
  struct Product {
    std::int64_t rows, cols, depth;
  };
  std::vector<Product> products;
  std::vector<std::int64_t> memory_copies_bytes;
  std::vector<std::int64_t> host_copies_bytes;  ///< between device and host; empty if they are the same memory
  std::int64_t least_collective_bytes = 1024;   ///< each further size is four times as large
  std::int64_t most_collective_bytes = std::int64_t{64} << 20;
  double block_s = 0.03;  ///< calls are repeated for about this long, three times
};

/// The operations of a single rank that are worth timing, on whatever device it computes.
class RankDevice {
 public:
  using Work = std::function<void()>;

  virtual ~RankDevice() = default;
  /// Called by the thread that uses the device from then on.
  virtual void enter() {}
  /// Each of these functions prepares what it needs and returns a call that executes the operation once or enqueues it.
  /// The call is valid until the next one is requested.
  virtual Work product(workload::Precision precision, const RateSizes::Product& size) = 0;
  virtual Work copy(workload::CopyKind kind, std::int64_t bytes) = 0;
  /// In fp32, in place. `bytes` is the whole range, a multiple of 4 bytes per rank.
  virtual Work collective(workload::ExchangeKind kind, workload::RankScope scope, std::int64_t bytes) = 0;
  /// Returns when all enqueued operations are done.
  virtual void wait() = 0;
  /// What is taken of a GPU's memory by others than the calls above, which are not valid afterwards; 0: it is no GPU.
  virtual std::int64_t taken_bytes() { return 0; }
};

/// Communicators for the ranks of this process: among its threads if it is alone, otherwise with the other processes,
/// which must open the same ones in the same order.
class RankGroups {
 public:
  /// `processes`: null if this process runs all ranks. The arguments must outlive the object.
  RankGroups(const JobRanks& job, engine::Processes* processes, const Clock& clock)
      : job_(job), processes_(processes), clock_(clock) {}

  /// Returns the rank's end of its group, or a communicator with itself if it is alone. Must not outlive this object.
  std::unique_ptr<engine::Communicator> open(workload::RankScope scope, int rank);
  /// Called when a rank has failed: makes all that wait for it in a collective throw Aborted, now and later. Safe from
  /// any thread.
  void abort();

 private:
  const JobRanks& job_;
  engine::Processes* processes_;
  const Clock& clock_;
  std::map<std::pair<workload::RankScope, int>, std::unique_ptr<engine::ThreadGroup>> threads_;  ///< by first member
};

/// What the devices of this process's ranks are made from. All of it must outlive them.
struct RankWorld {
  const JobRanks& job;
  RankGroups& groups;
  engine::Processes* processes = nullptr;  ///< null: this process runs all ranks
  const Clock& clock;
  std::optional<workload::EmulatedNetwork> network =
      {};  ///< for CPU ranks: collectives are delayed to the time that they would take
};

/// Makes the devices of this process's ranks, by rank: all of them if the process is alone, otherwise one.
using MakeRankDevices = std::function<std::vector<std::unique_ptr<RankDevice>>(const RankWorld& world)>;

std::vector<std::unique_ptr<RankDevice>> make_host_devices(const RankWorld& world);
RateSizes host_rate_sizes();

/// Measures products, copies and collectives on all ranks of the job, as nccl-tests does: every size once untimed, then
/// repeatedly between two barriers of all ranks. `say` is told what is measured next. Each process of the job must call
/// it with the devices of its ranks, and gets the same numbers. Throws what a device throws.
workload::MeasuredRates measure_rates(const RankWorld& world, const std::vector<std::unique_ptr<RankDevice>>& devices,
                                      const RateSizes& sizes, const std::function<void(const std::string&)>& say);

}  // namespace krigtune::bench
