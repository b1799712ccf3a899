#pragma once
#include <array>
#include <vector>

#include "engine/host/arena.h"
#include "engine/host/communicator.h"
#include "engine/host/kernels/kernel.h"
#include "plan/step_plan.h"

namespace krigtune::engine {

/// The first `done` operations of `stream` must be done.
struct Dependency {
  schedule::Stream stream{};
  std::int32_t done = 0;
};

/// An operation whose ranges are pointers into one rank's memory.
struct BoundOperation {
  const plan::Operation* operation = nullptr;
  Kernel<float> kernel = nullptr;  ///< null for a collective
  std::vector<OperandView> operands;
  std::vector<Segment> segments;  ///< for a collective
  std::vector<Dependency> dependencies;
  std::vector<plan::BufferId> buffers;  ///< the buffers that it touches, each once
};

/// The operations of each stream in their order. Points into the plan and the memory, which must outlive it.
using BoundPlan = std::array<std::vector<BoundOperation>, schedule::kStreamCount>;

/// The rank within each group.
using GroupRanks = std::array<std::int64_t, schedule::kGroupCount>;

/// Binds a plan to memory. check_structure must find nothing wrong with the plan.
BoundPlan bind_plan(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks);

/// Calls the kernel of an operation that is not a collective. Kernels compute in float. A 16-bit operand has a float
/// shadow, which is widened before the call if the kernel reads it, and rounded back after the call if the kernel
/// writes it. Allocates nothing; `scratch` has at least call_scratch_elems elements.
void call_kernel(const BoundOperation& bound, const StepContext& context, float* scratch);

/// Throws std::logic_error if there are more operands than shadows.
std::int64_t call_scratch_elems(const BoundOperation& bound);

}  // namespace krigtune::engine
