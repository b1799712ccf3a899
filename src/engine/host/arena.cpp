#include "engine/host/arena.h"

#include <algorithm>
#include <cstring>
#include <new>
namespace krigtune::engine {
namespace {

constexpr std::align_val_t kPage{4096};
constexpr std::int64_t kLeastGuardBytes = std::int64_t{1} << 20U;
constexpr std::int64_t kGuardFraction = 8;
// If this is the last byte of an element, the element is a float near -1e36 or a token above 4e9. No real data end so.
constexpr unsigned char kPattern = 0xFB;

std::byte* allocate(std::int64_t bytes) {
  return static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kPage));
}

}  // namespace

Arena::Arena(std::int64_t planned_bytes, bool observe)
    : planned_bytes_(planned_bytes),
      total_bytes_(planned_bytes + std::max(kLeastGuardBytes, planned_bytes / kGuardFraction)),
      memory_(allocate(total_bytes_)) {
  if (observe) std::memset(memory_.get(), kPattern, static_cast<std::size_t>(total_bytes_));
}

Arena::~Arena() { unpoison(memory_.get(), total_bytes_); }

void Arena::Free::operator()(std::byte* memory) const { ::operator delete(memory, kPage); }

// Reads poisoned bytes on purpose.
__attribute__((no_sanitize("address"))) std::int64_t Arena::highest_changed_bytes() const {
  const std::byte* bytes = memory_.get();
  for (std::int64_t end = total_bytes_; end > 0; --end) {
    if (bytes[end - 1] != std::byte{kPattern}) return end;
  }
  return 0;
}

namespace {

std::vector<int> count_uses(const plan::StepPlan& plan) {
  std::vector<int> uses(plan.buffers.size(), 0);
  for (const plan::Operation& operation : plan.operations) {
    std::vector<plan::BufferId> seen;
    for (const plan::Operand& operand : operation.operands) {
      const plan::BufferId id = operand.range.buffer;
      if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
      seen.push_back(id);
      ++uses[static_cast<std::size_t>(id)];
    }
  }
  return uses;
}

}  // namespace

BufferLifetimes::BufferLifetimes(const plan::StepPlan& plan, const RankMemory& memory)
    : plan_(plan),
      memory_(memory),
      uses_(count_uses(plan)),
      still_to_go_(std::make_unique<std::atomic<int>[]>(plan.buffers.size())) {
  for (const Arena* arena : {&memory.device, &memory.host}) poison(arena->at(0), arena->total_bytes());
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.persistent) unpoison(memory.at(buffer), buffer.bytes());
  }
}

void BufferLifetimes::begin_step() {
  for (std::size_t i = 0; i < uses_.size(); ++i) still_to_go_[i].store(uses_[i], std::memory_order_relaxed);
}

void BufferLifetimes::begin_use(const std::vector<plan::BufferId>& buffers) {
  for (const plan::BufferId id : buffers) {
    const plan::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(id)];
    if (!buffer.persistent) unpoison(memory_.at(buffer), buffer.bytes());
  }
}

// The last user poisons the bytes. The plan orders the first use by their next owner after that.
void BufferLifetimes::end_use(const std::vector<plan::BufferId>& buffers) {
  for (const plan::BufferId id : buffers) {
    const plan::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(id)];
    const bool last = still_to_go_[static_cast<std::size_t>(id)].fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last && !buffer.persistent) poison(memory_.at(buffer), buffer.bytes());
  }
}

}  // namespace krigtune::engine
