// Greedy by size (as in Pisarchyk and Lee 2020, "Efficient memory management for deep neural net inference", 5.2): the
// largest buffer first, each at the lowest offset where it meets no buffer that may be in use at the same time.
// "At the same time" is decided by happens-before over stream order and waits, not by the order of issue: what runs
// asynchronously keeps its bytes until somebody has waited for it.
#include <algorithm>
#include <array>
#include <numeric>

#include "krigtune/plan/memory.h"
#include "lifetimes.h"

namespace krigtune {
namespace {

std::int64_t align_up(std::int64_t bytes) { return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes; }

class Layout {
 public:
  Layout(StepPlan& plan, const std::vector<Lifetime>& lives) : plan_(plan), lives_(lives) {}

  void place(std::size_t buffer) {
    std::int64_t offset = 0;
    std::vector<std::size_t>& placed = placed_[static_cast<std::size_t>(plan_.buffers[buffer].place)];
    for (const std::size_t other : placed) {  // by offset
      if (lives_[buffer].ends_before(lives_[other]) || lives_[other].ends_before(lives_[buffer])) continue;
      if (offset + bytes(buffer) <= plan_.buffers[other].offset_bytes) break;
      offset = std::max(offset, align_up(plan_.buffers[other].offset_bytes + bytes(other)));
    }
    plan_.buffers[buffer].offset_bytes = offset;
    std::int64_t& arena_bytes =
        plan_.buffers[buffer].place == Place::kDevice ? plan_.arena_bytes : plan_.host_arena_bytes;
    arena_bytes = std::max(arena_bytes, offset + bytes(buffer));
    const auto behind = std::upper_bound(placed.begin(), placed.end(), offset, [&](std::int64_t o, std::size_t b) {
      return o < plan_.buffers[b].offset_bytes;
    });
    placed.insert(behind, buffer);
  }

 private:
  std::int64_t bytes(std::size_t buffer) const { return plan_.buffers[buffer].bytes(); }

  StepPlan& plan_;
  const std::vector<Lifetime>& lives_;
  std::array<std::vector<std::size_t>, kPlaceCount> placed_;
};

}  // namespace

void lay_out(StepPlan& plan) {
  const std::vector<Lifetime> lives = lifetimes(plan).buffers;
  std::vector<std::size_t> order(plan.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Buffer& first = plan.buffers[a];
    const Buffer& second = plan.buffers[b];
    if (first.persistent != second.persistent) return first.persistent;
    return first.bytes() > second.bytes();
  });
  plan.arena_bytes = 0;
  plan.host_arena_bytes = 0;
  Layout layout(plan, lives);
  for (const std::size_t buffer : order) {
    if (lives[buffer].first >= 0) layout.place(buffer);
  }
}

}  // namespace krigtune
