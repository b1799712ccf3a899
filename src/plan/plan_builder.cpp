#include "plan_builder.h"

#include <algorithm>

#include "operation_costs.h"

namespace krigtune {
namespace {

std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }

// All ranks' elements: plans are the same for all ranks, so a shard stands for every rank's shard.
std::int64_t end_of(const Range& range, std::int64_t ranks) {
  return range.begin_elems + range.rank_stride_elems * (ranks - 1) + range.elems;
}

}  // namespace

Operand reads(BufferId buffer, std::int64_t elems) { return {{buffer, 0, elems, 0}, Access::kRead}; }
Operand writes(BufferId buffer, std::int64_t elems) { return {{buffer, 0, elems, 0}, Access::kWrite}; }
Operand updates(BufferId buffer, std::int64_t elems) { return {{buffer, 0, elems, 0}, Access::kReadWrite}; }

void PlanBuilder::at(Phase phase, std::int64_t micro_step, std::int64_t layer) {
  phase_ = phase;
  micro_step_ = static_cast<std::int32_t>(micro_step);
  layer_ = static_cast<std::int32_t>(layer);
}

BufferId PlanBuilder::buffer(std::string name, Term term, std::int64_t elems, DType type, Place place) {
  plan_.buffers.push_back({std::move(name), term, type, elems, false, place, -1});
  touches_.emplace_back();
  return static_cast<BufferId>(plan_.buffers.size()) - 1;
}

BufferId PlanBuilder::persistent(std::string name, Term term, std::int64_t elems, DType type, Place place) {
  const BufferId id = buffer(std::move(name), term, elems, type, place);
  plan_.buffers.back().persistent = true;
  return id;
}

Operation PlanBuilder::make(OpKind kind, Stream stream, const Shape& shape, std::vector<Operand> operands) const {
  Operation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.phase = phase_;
  operation.layer = layer_;
  operation.micro_step = micro_step_;
  operation.shape = shape;
  operation.operands = std::move(operands);
  return operation;
}

OpId PlanBuilder::add(OpKind kind, Stream stream, const Shape& shape, std::vector<Operand> operands, double scale,
                      std::initializer_list<OpId> after) {
  Operation operation = make(kind, stream, shape, std::move(operands));
  operation.scale = scale;
  return append(std::move(operation), after);
}

OpId PlanBuilder::add_tensor_group(OpKind kind, Stream stream, const Shape& shape, std::vector<Operand> operands) {
  Operation operation = make(kind, stream, shape, std::move(operands));
  operation.group = Group::kTensor;
  return append(std::move(operation), {});
}

OpId PlanBuilder::append(Operation operation, std::initializer_list<OpId> after) {
  const Stream stream = operation.stream;
  VectorClock clock{};
  const OpId previous = last_[index(stream)];
  if (previous >= 0) {
    clock = clocks_[static_cast<std::size_t>(previous)];
    clock[index(stream)] = positions_[static_cast<std::size_t>(previous)];
  }
  for (const OpId other : after) wait_for(operation, clock, other);
  if (stream == Stream::kCompute) {
    for (const OpId other : held_for_) wait_for(operation, clock, other);
    held_for_.clear();
  }
  order_by_data(operation, clock);
  add_costs(operation, plan_);

  const auto id = static_cast<OpId>(plan_.operations.size());
  positions_.push_back(previous < 0 ? 1 : positions_[static_cast<std::size_t>(previous)] + 1);
  clocks_.push_back(clock);
  remember(operation, id);
  last_[index(stream)] = id;
  plan_.operations.push_back(std::move(operation));
  return id;
}

void PlanBuilder::hold_compute_for(OpId op) {
  if (op >= 0) held_for_.push_back(op);
}

// Later operations of a stream imply earlier ones, and so do the waits of those: only what is new is written down.
void PlanBuilder::wait_for(Operation& operation, VectorClock& clock, OpId other) const {
  if (other < 0) return;
  const auto at = static_cast<std::size_t>(other);
  const std::size_t stream = index(plan_.operations[at].stream);
  if (clock[stream] >= positions_[at]) return;
  operation.waits.push_back(other);
  merge(clock, clocks_[at]);
  clock[stream] = positions_[at];
}

void PlanBuilder::order_by_data(Operation& operation, VectorClock& clock) const {
  std::array<OpId, kStreamCount> latest{-1, -1, -1, -1, -1};
  for (const Operand& operand : operation.operands) {
    const std::int64_t end_elems = end_of(operand.range, plan_.group_ranks(operation.group));
    for (const Touch& touch : touches_[static_cast<std::size_t>(operand.range.buffer)]) {
      const bool overlaps = touch.begin_elems < end_elems && operand.range.begin_elems < touch.end_elems;
      if (!overlaps || (!touch.writes && operand.access == Access::kRead)) continue;
      OpId& last = latest[index(plan_.operations[static_cast<std::size_t>(touch.op)].stream)];
      last = std::max(last, touch.op);
    }
  }
  std::sort(latest.begin(), latest.end(), std::greater<>());
  for (const OpId other : latest) wait_for(operation, clock, other);
}

void PlanBuilder::remember(const Operation& operation, OpId id) {
  for (const Operand& operand : operation.operands) {
    auto& touches = touches_[static_cast<std::size_t>(operand.range.buffer)];
    const Touch touch{operand.range.begin_elems, end_of(operand.range, plan_.group_ranks(operation.group)), id,
                      operand.access != Access::kRead};
    if (touch.writes) {
      // Whoever comes later is ordered behind this write, and with it behind all that it covers.
      std::erase_if(touches, [&](const Touch& old) {
        return old.op != id && touch.begin_elems <= old.begin_elems && old.end_elems <= touch.end_elems;
      });
    }
    touches.push_back(touch);
  }
}

}  // namespace krigtune
