#include "host/buffer_lifetimes.h"

#include <algorithm>

#include "host/poison.h"

namespace krigtune {
namespace {

std::vector<int> count_uses(const StepPlan& plan) {
  std::vector<int> uses(plan.buffers.size(), 0);
  for (const Operation& operation : plan.operations) {
    std::vector<BufferId> seen;
    for (const Operand& operand : operation.operands) {
      const BufferId id = operand.range.buffer;
      if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
      seen.push_back(id);
      ++uses[static_cast<std::size_t>(id)];
    }
  }
  return uses;
}

}  // namespace

BufferLifetimes::BufferLifetimes(const StepPlan& plan, const RankMemory& memory)
    : plan_(plan),
      memory_(memory),
      uses_(count_uses(plan)),
      still_to_go_(std::make_unique<std::atomic<int>[]>(plan.buffers.size())) {
  for (const Arena* arena : {&memory.device, &memory.host}) poison(arena->at(0), arena->total_bytes());
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.persistent) unpoison(memory.at(buffer), buffer.bytes());
  }
}

void BufferLifetimes::begin_step() {
  for (std::size_t i = 0; i < uses_.size(); ++i) still_to_go_[i].store(uses_[i], std::memory_order_relaxed);
}

void BufferLifetimes::begin_use(const std::vector<BufferId>& buffers) {
  for (const BufferId id : buffers) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(id)];
    if (!buffer.persistent) unpoison(memory_.at(buffer), buffer.bytes());
  }
}

// Whoever comes last closes it; the plan orders the first use of the bytes' next owner behind that.
void BufferLifetimes::end_use(const std::vector<BufferId>& buffers) {
  for (const BufferId id : buffers) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(id)];
    const bool last = still_to_go_[static_cast<std::size_t>(id)].fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last && !buffer.persistent) poison(memory_.at(buffer), buffer.bytes());
  }
}

}  // namespace krigtune
