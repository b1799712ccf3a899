#pragma once
#include <cstdint>

#include "plan/step_plan.h"
#include "workload/workload.h"

namespace krigtune::plan {

/// How the ranks of a group are distributed over nodes.
struct GroupSpan {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;  ///< on the node with the fewest ranks
};
/// World rank r is on node r / ranks_per_node.
GroupSpan group_span(const StepPlan& plan, schedule::Group group, std::int64_t world_rank, std::int64_t ranks_per_node);

/// Returns the seconds of a collective in which each rank sends `wire_bytes`, from the moment when the data of all
/// ranks are ready; 0 if there is nothing to send.
double collective_time_s(const workload::EmulatedNetwork& network, schedule::OpKind kind, const GroupSpan& span,
                         std::int64_t wire_bytes);

}  // namespace krigtune::plan
