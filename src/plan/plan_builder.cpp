#include "plan/plan_builder.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

// Splits the segment with elements on both sides of `at`.
template <class Segments>
void cut(Segments& segments, std::int64_t at) {
  auto behind = segments.lower_bound(at);
  if (behind == segments.begin()) return;
  auto& [begin, segment] = *std::prev(behind);
  if (segment.end_elems <= at) return;
  segments.emplace_hint(behind, at, segment);
  segment.end_elems = at;
}

}  // namespace

Operand reads(BufferId buffer, std::int64_t elems) { return {{buffer, 0, elems, 0}, Access::kRead}; }
Operand writes(BufferId buffer, std::int64_t elems) { return {{buffer, 0, elems, 0}, Access::kWrite}; }
Operand updates(BufferId buffer, std::int64_t elems) { return {{buffer, 0, elems, 0}, Access::kReadWrite}; }

void PlanBuilder::at(schedule::Phase phase, std::int64_t micro_step, std::int64_t layer) {
  phase_ = phase;
  micro_step_ = static_cast<std::int32_t>(micro_step);
  layer_ = static_cast<std::int32_t>(layer);
}

BufferId PlanBuilder::buffer(std::string name, schedule::Term term, std::int64_t elems, schedule::DType type,
                             schedule::Place place) {
  plan_.buffers.push_back({std::move(name), term, type, elems, false, place, -1});
  touched_.emplace_back();
  return static_cast<BufferId>(plan_.buffers.size()) - 1;
}

BufferId PlanBuilder::persistent(std::string name, schedule::Term term, std::int64_t elems, schedule::DType type,
                                 schedule::Place place) {
  const BufferId id = buffer(std::move(name), term, elems, type, place);
  plan_.buffers.back().persistent = true;
  return id;
}

Operation PlanBuilder::make(schedule::OpKind kind, schedule::Stream stream, const Shape& shape,
                            std::vector<Operand> operands) const {
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

OpId PlanBuilder::add(schedule::OpKind kind, schedule::Stream stream, const Shape& shape, std::vector<Operand> operands,
                      double scale, std::initializer_list<OpId> after) {
  Operation operation = make(kind, stream, shape, std::move(operands));
  operation.scale = scale;
  return append(std::move(operation), after);
}

OpId PlanBuilder::add_tensor_group(schedule::OpKind kind, schedule::Stream stream, const Shape& shape,
                                   std::vector<Operand> operands) {
  Operation operation = make(kind, stream, shape, std::move(operands));
  operation.group = schedule::Group::kTensor;
  return append(std::move(operation), {});
}

OpId PlanBuilder::append(Operation operation, std::initializer_list<OpId> after) {
  const schedule::Stream stream = operation.stream;
  VectorClock clock{};
  const OpId previous = last_[schedule::index_of(stream)];
  if (previous >= 0) {
    clock = clocks_[static_cast<std::size_t>(previous)];
    clock[schedule::index_of(stream)] = positions_[static_cast<std::size_t>(previous)];
  }
  for (const OpId other : after) wait_for(operation, clock, other);
  if (stream == schedule::Stream::kCompute) {
    for (const OpId other : held_for_) wait_for(operation, clock, other);
    held_for_.clear();
  }
  order_by_data(operation, clock);
  add_costs(operation, plan_);

  const auto id = static_cast<OpId>(plan_.operations.size());
  positions_.push_back(previous < 0 ? 1 : positions_[static_cast<std::size_t>(previous)] + 1);
  clocks_.push_back(clock);
  remember(operation, id);
  last_[schedule::index_of(stream)] = id;
  plan_.operations.push_back(std::move(operation));
  return id;
}

void PlanBuilder::hold_compute_for(OpId op) {
  if (op >= 0) held_for_.push_back(op);
}

// Later operations of a stream imply earlier ones, and so do their waits, so only new waits are recorded.
void PlanBuilder::wait_for(Operation& operation, VectorClock& clock, OpId other) const {
  if (other < 0) return;
  const auto at = static_cast<std::size_t>(other);
  const std::size_t stream = schedule::index_of(plan_.operations[at].stream);
  if (clock[stream] >= positions_[at]) return;
  operation.waits.push_back(other);
  merge(clock, clocks_[at]);
  clock[stream] = positions_[at];
}

// Plans are the same for all ranks, so a shard represents every rank's shard.
std::pair<std::int64_t, std::int64_t> PlanBuilder::elems_of_all_ranks(const Operation& operation,
                                                                      const Range& range) const {
  const std::int64_t last = range.begin_elems + range.rank_stride_elems * (plan_.group_ranks(operation.group) - 1);
  return {range.begin_elems, last + range.elems};
}

void PlanBuilder::order_by_data(Operation& operation, VectorClock& clock) const {
  std::array<OpId, schedule::kStreamCount> latest{-1, -1, -1, -1, -1};
  const auto order_behind = [&](OpId other) {
    if (other < 0) return;
    OpId& last = latest[schedule::index_of(plan_.operations[static_cast<std::size_t>(other)].stream)];
    last = std::max(last, other);
  };
  for (const Operand& operand : operation.operands) {
    const Segments& segments = touched_[static_cast<std::size_t>(operand.range.buffer)];
    const auto [begin, end] = elems_of_all_ranks(operation, operand.range);
    auto at = segments.upper_bound(begin);
    if (at != segments.begin() && std::prev(at)->second.end_elems > begin) --at;
    for (; at != segments.end() && at->first < end; ++at) {
      order_behind(at->second.written);
      if (operand.access == Access::kRead) continue;
      for (const OpId reader : at->second.read) order_behind(reader);
    }
  }
  std::sort(latest.begin(), latest.end(), std::greater<>());
  for (const OpId other : latest) wait_for(operation, clock, other);
}

// An operation after a write is ordered after it, and thus also after all accesses that the write was ordered after.
void PlanBuilder::remember(const Operation& operation, OpId id) {
  for (const Operand& operand : operation.operands) {
    Segments& segments = touched_[static_cast<std::size_t>(operand.range.buffer)];
    const auto [begin, end] = elems_of_all_ranks(operation, operand.range);
    if (begin >= end) continue;
    cut(segments, begin);
    cut(segments, end);
    const auto from = segments.lower_bound(begin);
    const auto to = segments.lower_bound(end);
    if (operand.access != Access::kRead) {
      segments.emplace_hint(segments.erase(from, to), begin, Segment{end, id});
      continue;
    }
    std::int64_t known = begin;
    for (auto at = from; at != to; ++at) {
      at->second.read[schedule::index_of(operation.stream)] = id;
      if (at->first > known) fill(segments, known, at->first, operation.stream, id);
      known = at->second.end_elems;
    }
    if (known < end) fill(segments, known, end, operation.stream, id);
  }
}

void PlanBuilder::fill(Segments& segments, std::int64_t begin_elems, std::int64_t end_elems, schedule::Stream stream,
                       OpId id) {
  Segment segment{end_elems};
  segment.read[schedule::index_of(stream)] = id;
  segments.emplace(begin_elems, segment);
}

}  // namespace krigtune::plan
