#include "host/bound_plan.h"

#include <algorithm>

#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

OperandView view_of(const StepPlan& plan, const RankMemory& memory, std::int64_t rank, const Operand& operand) {
  const Range& range = operand.range;
  const Buffer& buffer = plan.buffers[static_cast<std::size_t>(range.buffer)];
  const std::int64_t begin_elems = range.begin_elems + rank * range.rank_stride_elems;
  return {memory.at(buffer) + begin_elems * size_bytes(buffer.type), range.elems, operand.access, buffer.type};
}

std::vector<Segment> segments_of(OpKind kind, const std::vector<OperandView>& views) {
  std::vector<Segment> segments;
  if (kind == OpKind::kAllGather) {
    for (std::size_t i = 0; i + 1 < views.size(); i += 2) {
      segments.push_back({views[i + 1].data, views[i + 1].elems, views[i].data, views[i + 1].type});
    }
  } else {
    for (const OperandView& view : views) segments.push_back({view.data, view.elems, nullptr, view.type});
  }
  return segments;
}

std::vector<BufferId> buffers_of(const Operation& operation) {
  std::vector<BufferId> buffers;
  for (const Operand& operand : operation.operands) buffers.push_back(operand.range.buffer);
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  return buffers;
}

}  // namespace

BoundPlan bind_plan(const StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks) {
  BoundPlan bound;
  std::vector<Dependency> completion;  // by operation: what its own completion means
  for (const Operation& operation : plan.operations) {
    BoundOperation entry;
    entry.operation = &operation;
    const std::int64_t rank = ranks[static_cast<std::size_t>(operation.group)];
    for (const Operand& operand : operation.operands) entry.operands.push_back(view_of(plan, memory, rank, operand));
    if (is_collective(operation.kind)) {
      entry.segments = segments_of(operation.kind, entry.operands);
    } else {
      entry.kernel = kernel_for<float>(operation.kind);
    }
    for (const OpId other : operation.waits) entry.dependencies.push_back(completion[static_cast<std::size_t>(other)]);
    entry.buffers = buffers_of(operation);
    auto& stream = bound[index_of(operation.stream)];
    stream.push_back(std::move(entry));
    completion.push_back({operation.stream, static_cast<std::int32_t>(stream.size())});
  }
  return bound;
}

}  // namespace krigtune
