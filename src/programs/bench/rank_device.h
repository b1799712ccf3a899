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

/// Where the ranks of a job are.
struct JobRanks {
  std::vector<int> nodes;          ///< by rank
  std::vector<std::string> hosts;  ///< by node

  int size() const { return static_cast<int>(nodes.size()); }
  /// The ranks with whom this one forms a group, in ascending order and itself among them.
  std::vector<int> members(workload::RankScope scope, int rank) const;
  /// The groups that say something: within a node only where one has several ranks, between nodes only where there are
  /// several, and among all only where that is neither of them.
  std::vector<workload::RankScope> scopes() const;
  /// Of the group of that rank.
  plan::GroupSpan span(workload::RankScope scope, int rank) const;
};

/// The sizes that are measured.
struct RateSizes {
  struct Product {
    std::int64_t rows, cols, depth;
  };
  std::vector<Product> products;
  std::vector<std::int64_t> memory_copies_bytes;
  std::vector<std::int64_t> host_copies_bytes;  ///< between device and host; empty: they are the same memory
  std::int64_t least_collective_bytes = 1024;   ///< then four times as many, and so on
  std::int64_t most_collective_bytes = std::int64_t{64} << 20;
  double block_s = 0.03;  ///< calls are repeated for about so long, and that three times
};

/// What a single rank can do that is worth timing, on whatever it computes.
class RankDevice {
 public:
  using Work = std::function<void()>;

  virtual ~RankDevice() = default;
  /// Called by the thread that uses it from then on.
  virtual void enter() {}
  /// Each prepares what it needs and returns a call that does it once, or puts it on a queue. The call is valid until
  /// the next one is asked for.
  virtual Work product(workload::Precision precision, const RateSizes::Product& size) = 0;
  virtual Work copy(workload::CopyKind kind, std::int64_t bytes) = 0;
  /// In fp32, in place. `bytes`: the whole range, a multiple of 4 bytes a rank.
  virtual Work collective(workload::ExchangeKind kind, workload::RankScope scope, std::int64_t bytes) = 0;
  /// Returns when all that was called is done.
  virtual void wait() = 0;
};

/// Communicators for the ranks of this process: among its threads when it is alone, else to the other processes, which
/// then open the same ones in the same order.
class RankGroups {
 public:
  /// `processes`: null when this process has all ranks. All must outlive it.
  RankGroups(const JobRanks& job, engine::Processes* processes, const Clock& clock)
      : job_(job), processes_(processes), clock_(clock) {}

  /// The rank's end of the group that it is in; one of its own where nobody else is. Must not outlive this.
  std::unique_ptr<engine::Communicator> open(workload::RankScope scope, int rank);
  /// A rank has failed: whoever waits for it in a collective throws Aborted, now and later. From any thread.
  void abort();

 private:
  const JobRanks& job_;
  engine::Processes* processes_;
  const Clock& clock_;
  std::map<std::pair<workload::RankScope, int>, std::unique_ptr<engine::ThreadGroup>> threads_;  ///< by first member
};

/// What the devices of the ranks of this process are made of. All must outlive them.
struct RankWorld {
  const JobRanks& job;
  RankGroups& groups;
  engine::Processes* processes = nullptr;  ///< null: this process has all ranks
  const Clock& clock;
  std::optional<workload::EmulatedNetwork> network = {};  ///< CPU ranks: collectives are held for what it would take
};

/// The devices of the ranks of this process, by rank: all of them when it is alone, else one.
using MakeRankDevices = std::function<std::vector<std::unique_ptr<RankDevice>>(const RankWorld& world)>;

std::vector<std::unique_ptr<RankDevice>> make_host_devices(const RankWorld& world);
RateSizes host_rate_sizes();

/// Measures products, copies and collectives on all ranks of the job, in nccl-tests' manner: every size once without
/// being timed, then repeatedly between two meetings of all ranks. `say` hears what is measured next. Each process of
/// the job calls it, with the devices of its ranks, and gets the same numbers. Throws what a device throws.
workload::MeasuredRates measure_rates(const RankWorld& world, const std::vector<std::unique_ptr<RankDevice>>& devices,
                                      const RateSizes& sizes, const std::function<void(const std::string&)>& say);

}  // namespace krigtune::bench
