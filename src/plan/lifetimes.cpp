#include "lifetimes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace krigtune {
namespace {

void note_access(Lifetime& life, OpId op, const VectorClock& before, std::size_t stream, std::int32_t position) {
  if (life.first < 0) {
    life.first = op;
    life.before = before;
  }
  for (std::size_t s = 0; s < before.size(); ++s) life.before[s] = std::min(life.before[s], before[s]);
  life.through[stream] = position;
}

bool precedes(const VectorClock& through, const VectorClock& before) {
  for (std::size_t s = 0; s < through.size(); ++s) {
    if (through[s] > before[s]) return false;
  }
  return true;
}

// The places among the compute operations between which a buffer may be in use: [first, second).
std::pair<std::size_t, std::size_t> compute_span(const Lifetimes& lives, const Lifetime& life) {
  const auto begin = std::lower_bound(lives.compute.begin(), lives.compute.end(), life.first) - lives.compute.begin();
  const auto end = std::partition_point(lives.before.begin(), lives.before.end(),
                                        [&](const VectorClock& before) { return !precedes(life.through, before); });
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end - lives.before.begin())};
}

}  // namespace

bool Lifetime::ends_before(const Lifetime& later) const { return precedes(through, later.before); }

Lifetimes lifetimes(const StepPlan& plan) {
  Lifetimes lives;
  lives.buffers.resize(plan.buffers.size());
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
      note_access(lives.buffers[static_cast<std::size_t>(operand.range.buffer)], static_cast<OpId>(i), clock, stream,
                  positions[i]);
    }
    if (operation.stream == Stream::kCompute) {
      lives.compute.push_back(static_cast<OpId>(i));
      lives.before.push_back(clock);
    }
  }
  for (std::size_t b = 0; b < lives.buffers.size(); ++b) {
    if (!plan.buffers[b].persistent) continue;
    lives.buffers[b].first = 0;
    lives.buffers[b].before = {};
    lives.buffers[b].through.fill(std::numeric_limits<std::int32_t>::max());
  }
  return lives;
}

std::vector<std::int64_t> live_bytes(const StepPlan& plan, const Lifetimes& lives) {
  std::vector<std::int64_t> live(lives.compute.size() + 1, 0);
  for (std::size_t b = 0; b < lives.buffers.size(); ++b) {
    if (lives.buffers[b].first < 0 || plan.buffers[b].place != Place::kDevice) continue;
    const auto [begin, end] = compute_span(lives, lives.buffers[b]);
    if (begin >= end) continue;
    live[begin] += plan.buffers[b].bytes();
    live[end] -= plan.buffers[b].bytes();
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

bool is_live(const Lifetimes& lives, std::size_t buffer, std::size_t at) {
  if (lives.buffers[buffer].first < 0) return false;
  const auto [begin, end] = compute_span(lives, lives.buffers[buffer]);
  return begin <= at && at < end;
}

}  // namespace krigtune
