// FLOPs and bytes of one operation, from what the table of op_traits.cpp says of its kind.
//
// Wire bytes sent by one rank of N: (N - 1) / N of the data for a reduce-scatter or an all-gather, twice that for an
// all-reduce (NCCL's definition of bus bandwidth, nccl-tests doc/PERFORMANCE.md).
#include "operation_costs.h"

#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

// Of the operand that the operation's work is counted by: the first one, or the first of each group.
std::int64_t counted_elems(const Operation& operation, const OpTraits& traits) {
  const std::vector<Operand>& operands = operation.operands;
  if (!traits.is_list()) return operands.front().range.elems;
  std::int64_t elems = 0;
  const std::size_t stride = traits.group.size();
  for (std::size_t i = traits.operands.size(); i + stride <= operands.size(); i += stride) {
    elems += operands[i].range.elems;
  }
  return elems;
}

double flops(const Operation& operation, const OpTraits& traits) {
  if (traits.flops != nullptr) return traits.flops(operation);
  if (traits.flops_per_elem == 0.0) return 0.0;
  return traits.flops_per_elem * static_cast<double>(counted_elems(operation, traits));
}

// Look-ups touch one row of the table a token, not the table; what is only held is not touched.
std::int64_t touched_elems(const Operation& operation, const OpTraits& traits, std::size_t i) {
  if (i < traits.operands.size()) {
    if (traits.operands[i].role == Role::kHeld) return 0;
    if (traits.operands[i].looked_up) return operation.shape.rows * operation.shape.inner;
  }
  return operation.operands[i].range.elems;
}

// Every segment is a multiple of the ranks, but for scalars and an all-reduce over the tensor group: those are cut as
// evenly as possible, and counted so.
std::int64_t wire_bytes(const Operation& operation, const OpTraits& traits, const StepPlan& plan) {
  const std::int64_t ranks = plan.group_ranks(operation.group);
  const std::size_t stride = traits.group.size();
  std::int64_t bytes = 0;
  for (std::size_t whole = stride - 1; whole < operation.operands.size(); whole += stride) {
    const Range& range = operation.operands[whole].range;
    bytes += range.elems * size_bytes(plan.buffers[static_cast<std::size_t>(range.buffer)].type);
  }
  return traits.wire_passes * bytes * (ranks - 1) / ranks;
}

}  // namespace

void add_costs(Operation& operation, const StepPlan& plan) {
  const OpTraits& traits = traits_of(operation.kind);
  operation.flops = flops(operation, traits);
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const Operand& operand = operation.operands[i];
    const std::int64_t elems = touched_elems(operation, traits, i);
    const std::int64_t bytes = elems * size_bytes(plan.buffers[static_cast<std::size_t>(operand.range.buffer)].type);
    if (operand.access != Access::kWrite) operation.bytes_read += bytes;
    if (operand.access != Access::kRead) operation.bytes_written += bytes;
  }
  if (traits.family == OpFamily::kCollective) operation.wire_bytes = wire_bytes(operation, traits, plan);
}

}  // namespace krigtune
