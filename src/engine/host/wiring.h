#pragma once
#include <memory>
#include <vector>

#include "host/bound_plan.h"
#include "host/communicator.h"
#include "host/processes.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// Between whom the ranks of a plan communicate: one group for each stream with collectives, and within it one for each
/// data and tensor group, so that streams never wait for one another in it.
class Wiring {
 public:
  virtual ~Wiring() = default;
  /// The communicator of a rank of this process; null where the plan has no such collectives.
  virtual std::unique_ptr<Communicator> connect(Stream stream, Group group, std::int64_t world_rank) = 0;
  /// A rank has failed: frees all others of this process, now and later (they throw Aborted). From any thread.
  virtual void abort() = 0;
};

/// All ranks are threads of this process. The communicators must not outlive it.
std::unique_ptr<Wiring> wire_threads(const StepPlan& plan, const Clock& clock);
/// Each rank is a process. All processes connect the same streams and groups in the same order.
std::unique_ptr<Wiring> wire_processes(const StepPlan& plan, Processes& processes, const Clock& clock);

/// The data rank and the tensor rank.
inline GroupRanks group_ranks(const StepPlan& plan, std::int64_t world_rank) {
  return {world_rank / plan.tensor_ranks, world_rank % plan.tensor_ranks};
}
/// The world ranks of a rank's group, in the order of their ranks within it.
std::vector<int> members(const StepPlan& plan, Group group, std::int64_t world_rank);

}  // namespace krigtune
