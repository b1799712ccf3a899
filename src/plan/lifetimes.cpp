#include "lifetimes.h"

#include <algorithm>
#include <limits>

namespace krigtune {
namespace {

void note_access(Lifetime& life, OpId op, const VectorClock& before, std::size_t stream, std::int32_t position) {
  if (life.first < 0) {
    life.first = op;
    life.before = before;
  }
  life.last = op;
  for (std::size_t s = 0; s < before.size(); ++s) life.before[s] = std::min(life.before[s], before[s]);
  life.through[stream] = position;
}

}  // namespace

bool Lifetime::ends_before(const Lifetime& later) const {
  for (std::size_t s = 0; s < through.size(); ++s) {
    if (through[s] > later.before[s]) return false;
  }
  return true;
}

std::vector<Lifetime> lifetimes(const StepPlan& plan) {
  std::vector<Lifetime> lives(plan.buffers.size());
  std::vector<VectorClock> clocks(plan.operations.size());
  std::vector<std::int32_t> positions(plan.operations.size());
  std::array<OpId, kStreamCount> last{-1, -1, -1, -1, -1};
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& operation = plan.operations[i];
    const auto stream = static_cast<std::size_t>(operation.stream);
    VectorClock& clock = clocks[i];
    const auto learn = [&](OpId other) {
      const auto at = static_cast<std::size_t>(other);
      const auto other_stream = static_cast<std::size_t>(plan.operations[at].stream);
      merge(clock, clocks[at]);
      clock[other_stream] = std::max(clock[other_stream], positions[at]);
    };
    if (last[stream] >= 0) learn(last[stream]);
    for (const OpId other : operation.waits) learn(other);
    positions[i] = clock[stream] + 1;
    last[stream] = static_cast<OpId>(i);
    for (const Operand& operand : operation.operands) {
      note_access(lives[static_cast<std::size_t>(operand.range.buffer)], static_cast<OpId>(i), clock, stream,
                  positions[i]);
    }
  }
  for (std::size_t b = 0; b < lives.size(); ++b) {
    if (!plan.buffers[b].persistent) continue;
    lives[b].first = 0;
    lives[b].last = static_cast<OpId>(plan.operations.size()) - 1;
    lives[b].before = {};
    lives[b].through.fill(std::numeric_limits<std::int32_t>::max());
  }
  return lives;
}

std::vector<std::int64_t> live_bytes(const StepPlan& plan, const std::vector<Lifetime>& lives) {
  std::vector<std::int64_t> change(plan.operations.size() + 1, 0);
  for (std::size_t b = 0; b < lives.size(); ++b) {
    if (lives[b].first < 0) continue;
    change[static_cast<std::size_t>(lives[b].first)] += plan.buffers[b].bytes();
    change[static_cast<std::size_t>(lives[b].last) + 1] -= plan.buffers[b].bytes();
  }
  std::vector<std::int64_t> live(plan.operations.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < live.size(); ++i) live[i] = sum += change[i];
  return live;
}

}  // namespace krigtune
