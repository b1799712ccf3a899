#pragma once
#include <array>
#include <vector>

#include "engine/host/arena.h"
#include "engine/host/communicator.h"
#include "engine/host/kernels/kernel.h"
#include "plan/step_plan.h"

namespace krigtune::engine {

/// The operations of `stream` up to its `done`-th must be done.
struct Dependency {
  schedule::Stream stream{};
  std::int32_t done = 0;
};

/// An operation with pointers into one rank's memory in place of ranges.
struct BoundOperation {
  const plan::Operation* operation = nullptr;
  Kernel<float> kernel = nullptr;  ///< null: a collective
  std::vector<OperandView> operands;
  std::vector<Segment> segments;  ///< of a collective
  std::vector<Dependency> dependencies;
  std::vector<plan::BufferId> buffers;  ///< that it touches, each once
};

/// The operations of each stream in their order. Points into the plan and the memory, which must outlive it.
using BoundPlan = std::array<std::vector<BoundOperation>, schedule::kStreamCount>;

/// Which rank of the job, in each group.
using GroupRanks = std::array<std::int64_t, schedule::kGroupCount>;

/// For a plan in which check_structure finds nothing.
BoundPlan bind_plan(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks);

/// Calls the kernel of an operation that is not a collective. Kernels compute in float: an operand of 16 bits is seen
/// through a float shadow, widened before the call where it is read and rounded after it where it is written. Allocates
/// nothing; `scratch`: as many elements as call_scratch_elems says.
void call_kernel(const BoundOperation& bound, const StepContext& context, float* scratch);

/// Throws std::logic_error for more operands than shadows can be kept of.
std::int64_t call_scratch_elems(const BoundOperation& bound);

}  // namespace krigtune::engine
