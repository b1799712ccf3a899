// FLOPs: 2 m n k a product; attention causal-exact: row i meets i + 1 keys, so Q K^T and P V cost
// 4 * batch * hidden * seq (seq + 1) / 2 forward, and with the recomputed Q K^T five products backward instead of two.
// Elementwise kernels: operations per element as the kernels count them; they are bound by memory, not by these.
// Wire bytes sent by one rank of N: (N - 1) / N of the data for a reduce-scatter or an all-gather, twice that for an
// all-reduce (NCCL's definition of bus bandwidth, nccl-tests doc/PERFORMANCE.md).
#include "operation_costs.h"

namespace krigtune {
namespace {

// Elements of every `stride`-th operand from `first`: the segments of operations that work on lists, a rest of fewer
// operands (the control) left out.
std::int64_t segment_elems(const Operation& operation, std::size_t first, std::size_t stride) {
  std::int64_t elems = 0;
  for (std::size_t i = first; i + stride <= operation.operands.size(); i += stride)
    elems += operation.operands[i].range.elems;
  return elems;
}

// Of one product of attention, causal: row i meets i + 1 keys.
double attention_product(const Shape& shape) {
  const auto seq = static_cast<double>(shape.seq);
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.inner) * seq * (seq + 1.0) / 2.0;
}

// Eager attention has kept its probabilities, which saves one of five products.
double attention_backward_flops(const Operation& operation) {
  constexpr std::size_t kWithoutProbabilities = 5;
  return (operation.operands.size() > kWithoutProbabilities ? 4.0 : 5.0) * attention_product(operation.shape);
}

double flops(const Operation& operation) {
  const auto rows = static_cast<double>(operation.shape.rows);
  const auto inner = static_cast<double>(operation.shape.inner);
  const auto outer = static_cast<double>(operation.shape.outer);
  switch (operation.kind) {
    case OpKind::kLoadBatch:
    case OpKind::kZero:
    case OpKind::kCopy:
    case OpKind::kAllGather:
    case OpKind::kLossScale:
      return 0.0;
    case OpKind::kLinearForward:
    case OpKind::kLinearBackwardInput:
    case OpKind::kLinearBackwardWeight:
      return 2.0 * rows * inner * outer;
    case OpKind::kAttentionForward:
      return 2.0 * attention_product(operation.shape);
    case OpKind::kAttentionBackward:
      return attention_backward_flops(operation);
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
      return rows * inner;
    case OpKind::kAdamW:
      return flops_per_elem(operation.kind) * static_cast<double>(segment_elems(operation, 0, 4));
    case OpKind::kSgd:
      return flops_per_elem(operation.kind) * static_cast<double>(segment_elems(operation, 0, 3));
    case OpKind::kGradientNorm:
      return flops_per_elem(operation.kind) * static_cast<double>(segment_elems(operation, 1, 1));
    case OpKind::kAccumulate:
      return static_cast<double>(segment_elems(operation, 0, 2));
    case OpKind::kAllReduce:
    case OpKind::kAllReduceMax:
    case OpKind::kReduceScatter:
      return static_cast<double>(segment_elems(operation, 0, 1));
    default:
      return flops_per_elem(operation.kind) * static_cast<double>(operation.operands.front().range.elems);
  }
}

// Look-ups touch one row of the table a token, not the table.
bool is_look_up(const Operation& operation, std::size_t operand) {
  return (operation.kind == OpKind::kEmbeddingForward && operand == 1) ||
         (operation.kind == OpKind::kEmbeddingBackward && operand == 2);
}

bool is_held_only(const Operation& operation, std::size_t operand) {
  return (operation.kind == OpKind::kEmbeddingBackward && operand >= 3) ||
         (operation.kind == OpKind::kPositionsBackward && operand >= 2);
}

// Every segment is a multiple of the ranks, but for scalars and an all-reduce over the tensor group: those are cut as
// evenly as possible, and counted so.
std::int64_t wire_bytes(const Operation& operation, const StepPlan& plan) {
  const std::int64_t ranks = plan.group_ranks(operation.group);
  const bool pairs = operation.kind == OpKind::kAllGather;
  std::int64_t bytes = 0;
  for (std::size_t i = pairs ? 1 : 0; i < operation.operands.size(); i += pairs ? 2 : 1) {
    const Range& range = operation.operands[i].range;
    bytes += range.elems * size_bytes(plan.buffers[static_cast<std::size_t>(range.buffer)].type);
  }
  const std::int64_t passes = operation.kind == OpKind::kAllReduce || operation.kind == OpKind::kAllReduceMax ? 2 : 1;
  return passes * bytes * (ranks - 1) / ranks;
}

}  // namespace

void add_costs(Operation& operation, const StepPlan& plan) {
  operation.flops = flops(operation);
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const Operand& operand = operation.operands[i];
    if (is_held_only(operation, i)) continue;
    const std::int64_t elems =
        is_look_up(operation, i) ? operation.shape.rows * operation.shape.inner : operand.range.elems;
    const std::int64_t bytes = elems * size_bytes(plan.buffers[static_cast<std::size_t>(operand.range.buffer)].type);
    if (operand.access != Access::kWrite) operation.bytes_read += bytes;
    if (operand.access != Access::kRead) operation.bytes_written += bytes;
  }
  if (is_collective(operation.kind)) operation.wire_bytes = wire_bytes(operation, plan);
}

}  // namespace krigtune
