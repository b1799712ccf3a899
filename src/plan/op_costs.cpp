// Computes FLOPs and bytes of one operation from the table in op_table.cpp, and says what limits its speed.
//
// One rank of N sends (N - 1) / N of the data in a reduce-scatter or an all-gather, and twice that in an all-reduce
// (NCCL's definition of bus bandwidth, nccl-tests doc/PERFORMANCE.md).
#include <cstdint>
#include <vector>

#include "plan/op_scans.h"
#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

// Returns the elements of the operand by which the work is counted: the first one, or the first of each group.
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

// A look-up accesses one row of the table per token and not the whole table, and a product of some columns only these.
// A kHeld operand is not accessed.
std::int64_t touched_elems(const Operation& operation, const OpTraits& traits, std::size_t i) {
  if (i < traits.operands.size()) {
    if (traits.operands[i].role == Role::kHeld) return 0;
    if (traits.operands[i].looked_up) return operation.shape.rows * operation.shape.inner;
    if (traits.operands[i].elems == operands::rows_of_outer) return operation.shape.rows * operation.shape.outer;
  }
  return operation.operands[i].range.elems;
}

// Every segment is a multiple of the ranks, except scalars and all-reduces over the tensor group. Those are divided as
// evenly as possible, and counted in this way.
std::int64_t wire_bytes(const Operation& operation, const OpTraits& traits, const StepPlan& plan) {
  const std::int64_t ranks = plan.group_ranks(operation.group);
  const std::size_t stride = traits.group.size();
  std::int64_t bytes = 0;
  for (std::size_t whole = stride - 1; whole < operation.operands.size(); whole += stride) {
    const Range& range = operation.operands[whole].range;
    bytes += range.elems * schedule::size_bytes(plan.buffers[static_cast<std::size_t>(range.buffer)].type);
  }
  return traits.wire_passes * bytes * (ranks - 1) / ranks;
}

}  // namespace

workload::OpClass class_of(const Operation& operation) {
  if (operation.stream == schedule::Stream::kHost) return workload::OpClass::kHost;
  if (operation.stream == schedule::Stream::kCopy) return workload::OpClass::kCopy;
  const OpFamily family = traits_of(operation.kind).family;
  if (family == OpFamily::kAttention || family == OpFamily::kScan) return workload::OpClass::kAttention;
  if (family == OpFamily::kProduct) return workload::OpClass::kProduct;
  return operation.phase == schedule::Phase::kOptimizer ? workload::OpClass::kOptimizer : workload::OpClass::kMemory;
}

workload::ExchangeKind exchange_of(schedule::OpKind kind) {
  if (kind == schedule::OpKind::kAllGather) return workload::ExchangeKind::kAllGather;
  return kind == schedule::OpKind::kReduceScatter ? workload::ExchangeKind::kReduceScatter
                                                  : workload::ExchangeKind::kAllReduce;
}

void add_costs(Operation& operation, const StepPlan& plan) {
  const OpTraits& traits = traits_of(operation.kind);
  operation.flops = flops(operation, traits);
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const Operand& operand = operation.operands[i];
    const std::int64_t elems = touched_elems(operation, traits, i);
    const std::int64_t bytes =
        elems * schedule::size_bytes(plan.buffers[static_cast<std::size_t>(operand.range.buffer)].type);
    const bool rereads = i < traits.operands.size() && traits.operands[i].scratch;
    if (operand.access != Access::kWrite || rereads) operation.bytes_read += bytes;
    if (operand.access != Access::kRead) operation.bytes_written += bytes;
  }
  if (traits.family == OpFamily::kScan) {
    const auto type = plan.buffers[static_cast<std::size_t>(operation.operands.front().range.buffer)].type;
    operation.bytes_read += static_cast<std::int64_t>(operands::further_elems(operation)) * schedule::size_bytes(type);
  }
  if (traits.family == OpFamily::kCollective) operation.wire_bytes = wire_bytes(operation, traits, plan);
}

}  // namespace krigtune::plan
