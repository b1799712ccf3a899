#include "engine/host/bound_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "engine/host/number_types.h"
#include "plan/op_traits.h"

namespace krigtune::engine {
namespace {

OperandView view_of(const plan::StepPlan& plan, const RankMemory& memory, std::int64_t rank,
                    const plan::Operand& operand) {
  const plan::Range& range = operand.range;
  const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(range.buffer)];
  const std::int64_t begin_elems = range.begin_elems + rank * range.rank_stride_elems;
  return {memory.at(buffer) + begin_elems * schedule::size_bytes(buffer.type), range.elems, operand.access,
          buffer.type};
}

std::vector<Segment> segments_of(schedule::OpKind kind, const std::vector<OperandView>& views) {
  std::vector<Segment> segments;
  if (kind == schedule::OpKind::kAllGather) {
    for (std::size_t i = 0; i + 1 < views.size(); i += 2) {
      segments.push_back({views[i + 1].data, views[i + 1].elems, views[i].data, views[i + 1].type});
    }
  } else {
    for (const OperandView& view : views) segments.push_back({view.data, view.elems, nullptr, view.type});
  }
  return segments;
}

std::vector<plan::BufferId> buffers_of(const plan::Operation& operation) {
  std::vector<plan::BufferId> buffers;
  for (const plan::Operand& operand : operation.operands) buffers.push_back(operand.range.buffer);
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  return buffers;
}

}  // namespace

BoundPlan bind_plan(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks) {
  BoundPlan bound;
  std::vector<Dependency> completion;  // by operation: the progress of its stream that means that it is done
  for (const plan::Operation& operation : plan.operations) {
    BoundOperation entry;
    entry.operation = &operation;
    const std::int64_t rank = ranks[static_cast<std::size_t>(operation.group)];
    for (const plan::Operand& operand : operation.operands)
      entry.operands.push_back(view_of(plan, memory, rank, operand));
    if (plan::is_collective(operation.kind)) {
      entry.segments = segments_of(operation.kind, entry.operands);
    } else {
      entry.kernel = kernel_for<float>(operation.kind);
    }
    for (const plan::OpId other : operation.waits)
      entry.dependencies.push_back(completion[static_cast<std::size_t>(other)]);
    entry.buffers = buffers_of(operation);
    auto& stream = bound[schedule::index_of(operation.stream)];
    stream.push_back(std::move(entry));
    completion.push_back({operation.stream, static_cast<std::int32_t>(stream.size())});
  }
  return bound;
}

// An operation on lists of ranges is called block by block, so that its float shadows stay small however much memory it
// walks over. All other operations have shadows of whole operands, behind the kernel's own scratch.
namespace {

constexpr std::int64_t kBlockElems = 32768;
constexpr std::size_t kMostOperands = 16;

// Operands that are only held need no shadow: the kernel does not read them.
bool has_shadow(schedule::OpKind kind, const OperandView& view, std::size_t operand) {
  const plan::OpTraits& traits = plan::traits_of(kind);
  const bool is_held = operand < traits.operands.size() && traits.operands[operand].role == plan::Role::kHeld;
  return is_16_bit(view.type) && !is_held;
}

bool has_shadows(const BoundOperation& bound) {
  for (std::size_t i = 0; i < bound.operands.size(); ++i) {
    if (has_shadow(bound.operation->kind, bound.operands[i], i)) return true;
  }
  return false;
}

std::int64_t shadow_elems(std::int64_t elems) { return (elems + 15) / 16 * 16; }

/// The operands in the form in which the kernel sees them.
class ShadowedCall {
 public:
  ShadowedCall(const BoundOperation& bound, const StepContext& context, float* scratch)
      : bound_(bound),
        context_(context),
        scratch_(scratch),
        free_(scratch + shadow_elems(scratch_elems(bound.operation->kind, bound.operation->shape))) {}

  void add(const OperandView& view) {
    const schedule::OpKind kind = bound_.operation->kind;
    views_[count_] = seen_[count_] = view;
    if (has_shadow(kind, view, count_)) {
      seen_[count_].data = free_;
      seen_[count_].type = schedule::DType::kFp32;
      free_ += shadow_elems(view.elems);
      if (view.access != plan::Access::kWrite) {
        widen(view.type, static_cast<const std::uint16_t*>(view.data), view.elems, shadow(count_));
      }
    }
    ++count_;
  }

  void run() const {
    bound_.kernel({*bound_.operation, {seen_.data(), count_}, context_, scratch_});
    for (std::size_t i = 0; i < count_; ++i) {
      if (views_[i].data == seen_[i].data || views_[i].access == plan::Access::kRead) continue;
      round_to(views_[i].type, shadow(i), views_[i].elems, static_cast<std::uint16_t*>(views_[i].data));
    }
  }

 private:
  float* shadow(std::size_t i) const { return static_cast<float*>(seen_[i].data); }

  const BoundOperation& bound_;
  const StepContext& context_;
  float* scratch_;
  float* free_;
  std::array<OperandView, kMostOperands> views_;
  std::array<OperandView, kMostOperands> seen_;
  std::size_t count_ = 0;
};

OperandView part_of(const OperandView& view, std::int64_t begin_elems, std::int64_t elems) {
  return {static_cast<std::byte*>(view.data) + begin_elems * schedule::size_bytes(view.type), elems, view.access,
          view.type};
}

// A copy between operands of the same type needs no conversion.
bool copied_as_bytes(schedule::OpKind kind, const OperandView& source, const OperandView& destination) {
  if (kind != schedule::OpKind::kCopy || source.type != destination.type) return false;
  std::memcpy(destination.data, source.data,
              static_cast<std::size_t>(source.elems * schedule::size_bytes(source.type)));
  return true;
}

// The first block writes the head; all later ones add to it.
void call_by_blocks(const BoundOperation& bound, const StepContext& context, float* scratch,
                    const plan::OpTraits& traits) {
  const auto& operands = bound.operands;
  const std::size_t head = traits.operands.size();
  const std::size_t group = traits.group.size();
  const std::size_t tail = (operands.size() - head) % group;
  bool first = true;
  for (std::size_t at = head; at + group <= operands.size(); at += group) {
    if (copied_as_bytes(traits.kind, operands[at], operands[at + group - 1])) continue;
    for (std::int64_t begin = 0; begin < operands[at].elems; begin += kBlockElems) {
      const std::int64_t elems = std::min(kBlockElems, operands[at].elems - begin);
      ShadowedCall call(bound, context, scratch);
      for (std::size_t i = 0; i < head; ++i) {
        const OperandView& view = operands[i];
        call.add({view.data, view.elems, first ? view.access : plan::Access::kReadWrite, view.type});
      }
      for (std::size_t i = 0; i < group; ++i) call.add(part_of(operands[at + i], begin, elems));
      if (tail > 0) call.add(operands.back());
      call.run();
      first = false;
    }
  }
}

}  // namespace

void call_kernel(const BoundOperation& bound, const StepContext& context, float* scratch) {
  const schedule::OpKind kind = bound.operation->kind;
  if (kind == schedule::OpKind::kZero) {
    for (const OperandView& view : bound.operands) {
      std::memset(view.data, 0, static_cast<std::size_t>(view.elems * schedule::size_bytes(view.type)));
    }
    return;
  }
  if (!has_shadows(bound) && kind != schedule::OpKind::kCopy)
    return bound.kernel({*bound.operation, bound.operands, context, scratch});
  const plan::OpTraits& traits = plan::traits_of(kind);
  if (traits.is_list()) return call_by_blocks(bound, context, scratch, traits);
  ShadowedCall call(bound, context, scratch);
  for (const OperandView& view : bound.operands) call.add(view);
  call.run();
}

std::int64_t call_scratch_elems(const BoundOperation& bound) {
  const schedule::OpKind kind = bound.operation->kind;
  std::int64_t elems = shadow_elems(scratch_elems(kind, bound.operation->shape));
  if (!has_shadows(bound)) return elems;
  const plan::OpTraits& traits = plan::traits_of(kind);
  if (traits.is_list()) {
    return elems + static_cast<std::int64_t>(traits.operands.size() + traits.group.size() + 1) * kBlockElems;
  }
  if (bound.operands.size() > kMostOperands) throw std::logic_error("an operation has too many operands");
  for (std::size_t i = 0; i < bound.operands.size(); ++i) {
    if (has_shadow(kind, bound.operands[i], i)) elems += shadow_elems(bound.operands[i].elems);
  }
  return elems;
}

}  // namespace krigtune::engine
