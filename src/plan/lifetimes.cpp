// Happens-before by vector clocks (Mattern 1989) over stream order and waits.
//
// Which bytes are in use together: a moment of an execution is a set C of finished operations, closed under
// happens-before, and a set of running operations, all of whose predecessors are in C. A buffer is in use if an access
// to it is finished or running and not all are finished. Two buffers of which one ends before the other are never in
// use together, so the bytes in use at any such moment are a lower bound of every layout. The moments considered:
// operation i has just been issued, operations issued on eager streams run or are finished, and nothing else is
// finished unless it is required. Lazy streams run only what others wait for. Eager gathers reveal prefetched
// parameters, and lazy reductions reveal buckets that accumulate.
#include "plan/lifetimes.h"

#include <algorithm>
#include <limits>

namespace krigtune::plan {
namespace {

void note_access(Lifetime& life, OpId op, const VectorClock& before, std::size_t stream, std::int32_t position) {
  if (life.first < 0) {
    life.first = op;
    life.before = before;
  }
  for (std::size_t s = 0; s < before.size(); ++s) life.before[s] = std::min(life.before[s], before[s]);
  if (life.from[stream] == 0) life.from[stream] = position;
  life.through[stream] = position;
}

bool precedes(const VectorClock& through, const VectorClock& before) {
  for (std::size_t s = 0; s < through.size(); ++s) {
    if (through[s] > before[s]) return false;
  }
  return true;
}

void note_releases(const StepPlan& plan, Lifetimes& lives) {
  const auto count = static_cast<OpId>(plan.operations.size());
  VectorClock everywhere;  // what is done before every later operation
  everywhere.fill(std::numeric_limits<std::int32_t>::max());
  std::vector<VectorClock> suffix(lives.before.size());
  for (std::size_t i = suffix.size(); i > 0; --i) {
    for (std::size_t s = 0; s < everywhere.size(); ++s) everywhere[s] = std::min(everywhere[s], lives.before[i - 1][s]);
    suffix[i - 1] = everywhere;
  }
  for (std::size_t b = 0; b < lives.buffers.size(); ++b) {
    Lifetime& life = lives.buffers[b];
    if (plan.buffers[b].persistent) {
      life.first = 0;
      life.before = {};
      life.through.fill(std::numeric_limits<std::int32_t>::max());
      life.released = count;
    } else if (life.first >= 0) {
      const auto released = std::partition_point(suffix.begin() + life.first, suffix.end(),
                                                 [&](const VectorClock& c) { return !precedes(life.through, c); });
      life.released = static_cast<OpId>(released - suffix.begin());
    }
  }
}

// The moments of an execution for one choice of lazy streams.
class Moments {
 public:
  Moments(const StepPlan& plan, const Lifetimes& lives, unsigned lazy)
      : lives_(lives), lazy_(lazy), never_(plan.operations.size()) {
    VectorClock done{};
    for (auto& at : done_at_) at.push_back(0);
    for (std::size_t i = 0; i < never_; ++i) {
      if (!is_lazy(schedule::index_of(plan.operations[i].stream))) merge(done, lives.before[i]);
      for (std::size_t s = 0; s < done.size(); ++s) {
        while (done_at_[s].size() <= static_cast<std::size_t>(done[s])) done_at_[s].push_back(i);
      }
    }
  }

  /// Returns the moments [first, second) in which the buffer is in use.
  std::pair<std::size_t, std::size_t> span(const Lifetime& life, bool persistent) const {
    if (persistent) return {0, never_};
    std::size_t begin = never_;
    std::size_t end = 0;
    for (std::size_t s = 0; s < life.from.size(); ++s) {
      if (life.from[s] == 0) continue;
      const auto first = static_cast<std::size_t>(life.from[s]);
      begin = std::min(begin,
                       is_lazy(s) ? done_at(s, life.from[s]) : static_cast<std::size_t>(lives_.streams[s][first - 1]));
      end = std::max(end, done_at(s, life.through[s]));
    }
    return {begin, std::max(begin, end)};
  }

 private:
  bool is_lazy(std::size_t stream) const { return (lazy_ >> stream & 1U) != 0; }
  std::size_t done_at(std::size_t stream, std::int32_t position) const {
    const auto at = static_cast<std::size_t>(position);
    return at < done_at_[stream].size() ? done_at_[stream][at] : never_;
  }

  const Lifetimes& lives_;
  unsigned lazy_;
  std::size_t never_;
  std::array<std::vector<std::size_t>, schedule::kStreamCount>
      done_at_;  ///< by stream and position: the first moment at which it is done
};

// Returns the moment with the most bytes and its bytes. Of equal moments, one of an operation of the compute stream is
// preferred.
std::pair<std::size_t, std::int64_t> highest(const StepPlan& plan, const std::vector<std::int64_t>& steps) {
  std::pair<std::size_t, std::int64_t> best{0, -1};
  std::int64_t live = 0;
  bool computes = false;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    live += steps[i];
    const bool here = plan.operations[i].stream == schedule::Stream::kCompute;
    if (live < best.second || (live == best.second && (computes || !here))) continue;
    best = {i, live};
    computes = here;
  }
  return best;
}

}  // namespace

bool Lifetime::ends_before(const Lifetime& later) const { return precedes(through, later.before); }

Lifetimes lifetimes(const StepPlan& plan) {
  Lifetimes lives;
  lives.buffers.resize(plan.buffers.size());
  lives.before.resize(plan.operations.size());
  std::vector<std::int32_t> positions(plan.operations.size());
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& operation = plan.operations[i];
    const std::size_t stream = schedule::index_of(operation.stream);
    VectorClock& clock = lives.before[i];
    const auto learn = [&](OpId other) {
      const auto at = static_cast<std::size_t>(other);
      const std::size_t other_stream = schedule::index_of(plan.operations[at].stream);
      merge(clock, lives.before[at]);
      clock[other_stream] = std::max(clock[other_stream], positions[at]);
    };
    if (!lives.streams[stream].empty()) learn(lives.streams[stream].back());
    for (const OpId other : operation.waits) learn(other);
    positions[i] = clock[stream] + 1;
    lives.streams[stream].push_back(static_cast<OpId>(i));
    for (const Operand& operand : operation.operands) {
      note_access(lives.buffers[static_cast<std::size_t>(operand.range.buffer)], static_cast<OpId>(i), clock, stream,
                  positions[i]);
    }
  }
  note_releases(plan, lives);
  return lives;
}

LivePeak live_peak(const StepPlan& plan, const Lifetimes& lives, schedule::Place place) {
  LivePeak peak;
  peak.is_live.assign(plan.buffers.size(), false);
  unsigned used = 0;
  for (std::size_t s = 0; s < lives.streams.size(); ++s) used |= lives.streams[s].empty() ? 0U : 1U << s;
  const auto counts = [&](std::size_t b) { return plan.buffers[b].place == place && lives.buffers[b].first >= 0; };
  for (unsigned lazy = 0; lazy < 1U << schedule::kStreamCount; ++lazy) {
    // Computation and gathers are eager, because delaying them never keeps more bytes in use.
    if ((lazy & ~used) != 0 || (lazy & 3U) != 0) continue;
    const Moments moments(plan, lives, lazy);
    std::vector<std::int64_t> steps(plan.operations.size() + 1, 0);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      if (!counts(b)) continue;
      const auto [begin, end] = moments.span(lives.buffers[b], plan.buffers[b].persistent);
      steps[begin] += plan.buffers[b].bytes();
      steps[end] -= plan.buffers[b].bytes();
    }
    const auto [at, bytes] = highest(plan, steps);
    if (bytes <= peak.bytes && peak.at >= 0) continue;
    peak.bytes = std::max<std::int64_t>(bytes, 0);
    peak.at = plan.operations.empty() ? -1 : static_cast<OpId>(at);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const auto [begin, end] = moments.span(lives.buffers[b], plan.buffers[b].persistent);
      peak.is_live[b] = counts(b) && begin <= at && at < end;
    }
  }
  return peak;
}

}  // namespace krigtune::plan
