// Every wait and every predecessor in a stream comes earlier in the order of issue, which is the same on all ranks: so
// the operations of all ranks, a collective counted as one, have an order in which each can run when its turn comes.
#include <fmt/format.h>

#include <algorithm>

#include "check/checks.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

class Structure {
 public:
  Structure(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "structure", lines) {}

  void run() {
    if (plan_.ranks < 1 || plan_.tensor_ranks < 1) return findings_.add("a plan has at least one rank");
    for (const Buffer& buffer : plan_.buffers) check(buffer);
    check_kept(plan_.loss, "the loss");
    if (plan_.control >= 0) check_kept(plan_.control, "the control");
    for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
      for (const TensorHome& home : *homes) check(home);
    }
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) check(i);
  }

 private:
  void check(const Buffer& buffer) {
    const std::int64_t arena = buffer.place == Place::kDevice ? plan_.arena_bytes : plan_.host_arena_bytes;
    const bool is_aligned = buffer.offset_bytes >= 0 && buffer.offset_bytes % kAlignmentBytes == 0;
    if (!is_aligned || buffer.elems < 0 || buffer.offset_bytes + buffer.bytes() > arena) {
      findings_.add(
          fmt::format("buffer '{}' does not lie in the arena on a multiple of {} bytes", buffer.name, kAlignmentBytes));
    }
  }

  void check_kept(BufferId id, const char* what) {
    if (!exists(id) || !plan_.buffers[static_cast<std::size_t>(id)].persistent) {
      findings_.add(fmt::format("{} must lie in a persistent buffer", what));
    }
  }

  void check(const TensorHome& home) {
    check_kept(home.range.buffer, "every parameter");
    const bool names_tensor = home.tensor >= 0 && static_cast<std::size_t>(home.tensor) < plan_.tensors.size();
    if (!names_tensor || !exists(home.range.buffer) || !is_inside(home.range, plan_.ranks)) {
      findings_.add(fmt::format("the home of tensor {} leaves its buffer", home.tensor));
    }
  }

  void check(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    for (const OpId other : operation.waits) {
      if (other < 0 || static_cast<std::size_t>(other) >= i) {
        findings_.add(i, fmt::format("waits for operation {}, which is not before it", other));
      }
    }
    const std::size_t count = operation.operands.size();
    if (!traits_of(operation.kind).takes(count))
      return findings_.add(i, fmt::format("does not take {} operands", count));
    for (std::size_t k = 0; k < count; ++k) {
      const Operand& operand = operation.operands[k];
      if (!exists(operand.range.buffer)) return findings_.add(i, "names a buffer that does not exist");
      if (!is_inside(operand.range, plan_.group_ranks(operation.group))) {
        findings_.add(i, operand.range.buffer, fmt::format("leaves with operand {} its buffer", k));
      }
    }
    check_shards(i);
  }

  void check_shards(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    const bool gathers = operation.kind == OpKind::kAllGather;
    if (!gathers && operation.kind != OpKind::kReduceScatter) return;
    const std::int64_t ranks = plan_.group_ranks(operation.group);
    for (std::size_t k = gathers ? 1 : 0; k < operation.operands.size(); k += gathers ? 2 : 1) {
      const Range& whole = operation.operands[k].range;
      if (whole.elems % ranks != 0) findings_.add(i, whole.buffer, "has uneven shards");
      if (gathers && operation.operands[k - 1].range.elems != whole.elems / ranks) {
        findings_.add(i, whole.buffer, "has a shard of another size than 1/N");
      }
    }
  }

  bool is_inside(const Range& range, std::int64_t ranks) const {
    const std::int64_t elems = buffer_of(plan_, range).elems;
    const std::int64_t last = range.begin_elems + (ranks - 1) * range.rank_stride_elems;
    return range.elems > 0 && std::min(range.begin_elems, last) >= 0 &&
           std::max(range.begin_elems, last) + range.elems <= elems;
  }

  bool exists(BufferId id) const { return id >= 0 && static_cast<std::size_t>(id) < plan_.buffers.size(); }

  const StepPlan& plan_;
  Findings findings_;
};

}  // namespace

PlanFindings check_structure(const StepPlan& plan) {
  PlanFindings lines;
  Structure(plan, lines).run();
  return lines;
}

}  // namespace krigtune
