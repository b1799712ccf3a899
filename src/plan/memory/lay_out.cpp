// Greedy (as in Pisarchyk and Lee 2020, "Efficient memory management for deep neural net inference", 5.2): one buffer
// after the other, each at the lowest offset where it meets no buffer that may be in use at the same time. "At the same
// time" is decided by happens-before over stream order and waits, not by the order of issue: what runs asynchronously
// keeps its bytes until somebody has waited for it.
//
// Micro-steps repeat each other: the same buffer of all micro-steps gets one offset where each ends before the next
// begins, which makes the work that of one micro-step. The largest buffer goes first; other orders are tried only where
// the result is more than kGoodEnough above the lower bound (lifetimes.cpp).
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "krigtune/plan/memory.h"
#include "memory/lifetimes.h"

namespace krigtune {
namespace {

constexpr double kGoodEnough = 1.025;

std::int64_t align_up(std::int64_t bytes) { return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes; }

// Buffers that share one offset, each of them ending before the next begins.
struct Chain {
  std::vector<std::size_t> buffers;
  std::int64_t bytes = 0;
  OpId first = 0;
  OpId life = 0;  ///< of its first buffer, in operations
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< by chain
  std::int64_t end_bytes = 0;
};

class Layout {
 public:
  Layout(const StepPlan& plan, const Lifetimes& lives, Place place) : plan_(plan), lives_(lives.buffers) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const Buffer& buffer = plan.buffers[b];
      if (buffer.place != place || lives_[b].first < 0) continue;
      if (buffer.persistent) {
        kept_.push_back(b);
      } else {
        transient_.push_back(b);
      }
    }
    bound_bytes_ = live_peak(plan, lives, place).bytes;
  }

  /// Sets the offsets. Returns the end of the arena.
  std::int64_t run(std::vector<Buffer>& buffers) {
    std::int64_t kept_bytes = 0;
    std::int64_t end_bytes = 0;
    for (const std::size_t b : kept_) {
      buffers[b].offset_bytes = kept_bytes;
      end_bytes = kept_bytes + buffers[b].bytes();
      kept_bytes = align_up(end_bytes);
    }
    if (transient_.empty()) return end_bytes;
    Placement best;
    std::vector<Chain> best_chains;
    for (const bool share : {true, false}) {
      if (!share && (plan_.micro_steps == 1 || good_enough(best))) break;
      const std::vector<Chain> chains = make_chains(share);
      if (improve(best, chains, kept_bytes)) best_chains = chains;
    }
    for (std::size_t c = 0; c < best_chains.size(); ++c) {
      for (const std::size_t b : best_chains[c].buffers) buffers[b].offset_bytes = best.offsets[c];
    }
    return std::max(end_bytes, best.end_bytes);
  }

 private:
  using Order = std::function<double(const Chain&)>;  ///< the largest first

  bool good_enough(const Placement& placement) const {
    return !placement.offsets.empty() &&
           static_cast<double>(placement.end_bytes) <= kGoodEnough * static_cast<double>(bound_bytes_);
  }

  // Whether an order of these chains is better than the best so far.
  bool improve(Placement& best, const std::vector<Chain>& chains, std::int64_t from_bytes) const {
    const auto bytes = [](const Chain& c) { return static_cast<double>(c.bytes); };
    const std::vector<Order> orders = {bytes, [](const Chain& c) { return -static_cast<double>(c.first); },
                                       [](const Chain& c) { return static_cast<double>(c.life); },
                                       [&](const Chain& c) { return bytes(c) * static_cast<double>(c.life); }};
    bool better = false;
    for (const Order& order : orders) {
      std::vector<std::size_t> sequence(chains.size());
      std::iota(sequence.begin(), sequence.end(), std::size_t{0});
      std::stable_sort(sequence.begin(), sequence.end(),
                       [&](std::size_t a, std::size_t b) { return order(chains[a]) > order(chains[b]); });
      for (int round = 0; round <= repairs(chains.size()) && !good_enough(best); ++round) {
        Placement placement = place_all(chains, sequence, from_bytes);
        // What lies on top comes first in the next round.
        std::stable_partition(sequence.begin(), sequence.end(), [&](std::size_t c) {
          return placement.offsets[c] + chains[c].bytes == placement.end_bytes;
        });
        if (!best.offsets.empty() && placement.end_bytes >= best.end_bytes) continue;
        best = std::move(placement);
        better = true;
      }
    }
    return better;
  }

  // As many as cost little: a placement takes time with the square of the chains.
  static int repairs(std::size_t chains) {
    constexpr double kPairs = 1e6;
    constexpr double kMost = 40.0;
    const auto count = static_cast<double>(chains);
    return static_cast<int>(std::min(kMost, kPairs / (count * count)));
  }

  std::vector<Chain> make_chains(bool share) const {
    using Key = std::tuple<std::string_view, Term, std::int64_t, int>;  // name, term, bytes, how often in a micro-step
    std::map<Key, std::size_t> chain_of;
    std::map<std::tuple<std::string_view, Term, std::int64_t>, std::pair<std::int32_t, int>> seen;
    std::vector<Chain> chains;
    for (const std::size_t b : transient_) {
      const Buffer& buffer = plan_.buffers[b];
      const std::int32_t micro_step = plan_.operations[static_cast<std::size_t>(lives_[b].first)].micro_step;
      auto& [last_micro_step, times] =
          seen.try_emplace({buffer.name, buffer.term, buffer.bytes()}, -1, 0).first->second;
      times = last_micro_step == micro_step ? times + 1 : 0;
      last_micro_step = micro_step;
      const auto [at, is_new] = chain_of.try_emplace({buffer.name, buffer.term, buffer.bytes(), times}, chains.size());
      if (!is_new && share && lives_[chains[at->second].buffers.back()].ends_before(lives_[b])) {
        chains[at->second].buffers.push_back(b);
        continue;
      }
      at->second = chains.size();
      chains.push_back({{b}, buffer.bytes(), lives_[b].first, lives_[b].released - lives_[b].first});
    }
    return chains;
  }

  bool meet(const Chain& a, const Chain& b) const {
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.buffers.size() && j < b.buffers.size()) {
      const Lifetime& x = lives_[a.buffers[i]];
      const Lifetime& y = lives_[b.buffers[j]];
      if (x.released <= y.first || x.ends_before(y)) {
        ++i;
      } else if (y.released <= x.first || y.ends_before(x)) {
        ++j;
      } else {
        return true;
      }
    }
    return false;
  }

  Placement place_all(const std::vector<Chain>& chains, const std::vector<std::size_t>& sequence,
                      std::int64_t from_bytes) const {
    Placement placement;
    placement.offsets.resize(chains.size());
    std::vector<std::size_t> placed;  // by offset
    for (const std::size_t c : sequence) {
      std::int64_t offset = from_bytes;
      for (const std::size_t other : placed) {
        const std::int64_t end = align_up(placement.offsets[other] + chains[other].bytes);
        if (end <= offset || !meet(chains[c], chains[other])) continue;
        if (offset + chains[c].bytes <= placement.offsets[other]) break;
        offset = end;
      }
      placement.offsets[c] = offset;
      placement.end_bytes = std::max(placement.end_bytes, offset + chains[c].bytes);
      const auto behind = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](std::int64_t o, std::size_t p) { return o < placement.offsets[p]; });
      placed.insert(behind, c);
    }
    return placement;
  }

  const StepPlan& plan_;
  const std::vector<Lifetime>& lives_;
  std::vector<std::size_t> kept_, transient_;
  std::int64_t bound_bytes_ = 0;
};

}  // namespace

void lay_out(StepPlan& plan) {
  const Lifetimes lives = lifetimes(plan);
  for (Buffer& buffer : plan.buffers) buffer.offset_bytes = -1;
  plan.arena_bytes = Layout(plan, lives, Place::kDevice).run(plan.buffers);
  plan.host_arena_bytes = Layout(plan, lives, Place::kHost).run(plan.buffers);
}

}  // namespace krigtune
