#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "plan/lifetimes.h"
#include "plan/op_traits.h"

namespace krigtune::plan {

// Greedy (as in Pisarchyk and Lee 2020, "Efficient memory management for deep neural net inference", 5.2): the buffers
// are placed one after the other, each at the lowest offset without conflict with a buffer that may be in use at the
// same time. This is decided by happens-before over stream order and waits, not by the order of issue: an asynchronous
// operation keeps its bytes until something has waited for it.
//
// Micro-steps repeat each other. The same buffer of all micro-steps gets one offset if each ends before the next
// begins, which reduces the work to that of one micro-step. The largest buffer is placed first; other orders are tried
// only if the result is more than kGoodEnough above the lower bound (lifetimes.cpp).

namespace {

constexpr double kGoodEnough = 1.025;

std::int64_t align_up(std::int64_t bytes) {
  return (bytes + schedule::kAlignmentBytes - 1) / schedule::kAlignmentBytes * schedule::kAlignmentBytes;
}

// Buffers that share one offset, each of them ending before the next begins.
struct Chain {
  std::vector<std::size_t> buffers;
  std::int64_t bytes = 0;
  // These positions of the first buffer are indices of operations:
  OpId first = 0;
  OpId last = 0;  ///< the last operation that accesses it
  OpId life = 0;
  // These positions of all buffers are counted from the first operation of their micro-step:
  OpId from = 0;
  OpId until = 0;            ///< each is released after this operation
  bool in_one_step = false;  ///< each is released before its micro-step ends
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< by chain
  std::int64_t end_bytes = 0;
};

// A block of placed chains that are neighbours in the order of their offsets. Most buffers of a model exist from
// forward to backward or only for a moment. So a new chain conflicts with all or none of a block, which can be decided
// without examining each one.
class Block {
 public:
  Block(const std::vector<Chain>& chains, const Placement& placement) : chains_(&chains), placement_(&placement) {}

  const std::vector<std::size_t>& placed() const { return placed_; }
  std::int64_t begin_bytes() const { return offset(placed_.front()); }
  std::int64_t end_bytes() const { return end_bytes_; }  ///< aligned
  std::int64_t largest_gap_bytes() const { return largest_gap_bytes_; }

  // Returns whether, by the order of issue, each placed chain conflicts with the first buffer of `chain`: neither can
  // end before the other begins.
  bool all_meet(const Chain& chain) const { return last_ >= chain.first && chain.last >= first_; }
  // Returns whether in every micro-step one is released before the other begins.
  bool none_meets(const Chain& chain) const {
    return in_one_step_ && chain.in_one_step && (chain.until <= from_ || until_ <= chain.from);
  }

  void insert(std::size_t chain) {
    const auto behind = std::upper_bound(placed_.begin(), placed_.end(), offset(chain),
                                         [this](std::int64_t o, std::size_t p) { return o < offset(p); });
    placed_.insert(behind, chain);
    summarize();
  }

  // Splits off the upper half of a block that has become too large.
  Block split() {
    Block upper(*chains_, *placement_);
    const auto middle = placed_.begin() + static_cast<std::ptrdiff_t>(placed_.size() / 2);
    upper.placed_.assign(middle, placed_.end());
    placed_.erase(middle, placed_.end());
    summarize();
    upper.summarize();
    return upper;
  }

 private:
  std::int64_t offset(std::size_t chain) const { return placement_->offsets[chain]; }

  void summarize() {
    const Chain& any = (*chains_)[placed_.front()];
    first_ = any.first;
    last_ = any.last;
    from_ = any.from;
    until_ = any.until;
    in_one_step_ = true;
    end_bytes_ = begin_bytes();
    largest_gap_bytes_ = 0;
    for (const std::size_t p : placed_) {
      const Chain& chain = (*chains_)[p];
      first_ = std::max(first_, chain.first);
      last_ = std::min(last_, chain.last);
      from_ = std::min(from_, chain.from);
      until_ = std::max(until_, chain.until);
      in_one_step_ = in_one_step_ && chain.in_one_step;
      largest_gap_bytes_ = std::max(largest_gap_bytes_, offset(p) - end_bytes_);
      end_bytes_ = std::max(end_bytes_, align_up(offset(p) + chain.bytes));
    }
  }

  const std::vector<Chain>* chains_;
  const Placement* placement_;
  std::vector<std::size_t> placed_;
  OpId first_ = 0;  ///< the latest of their first operations
  OpId last_ = 0;   ///< the earliest of their last operations
  OpId from_ = 0, until_ = 0;
  bool in_one_step_ = true;
  std::int64_t end_bytes_ = 0;
  std::int64_t largest_gap_bytes_ = 0;
};

class Layout {
 public:
  Layout(const StepPlan& plan, const Lifetimes& lives, schedule::Place place)
      : plan_(plan), lives_(lives.buffers), streams_(lives.streams) {
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      const auto micro_step = static_cast<std::size_t>(plan.operations[i].micro_step);
      while (step_begins_.size() <= micro_step) step_begins_.push_back(static_cast<OpId>(i));
    }
    step_begins_.push_back(static_cast<OpId>(plan.operations.size()));
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

  /// Sets the offsets and returns the end of the arena.
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
  using Order = std::function<double(const Chain&)>;  ///< chains with larger values are placed first

  bool good_enough(const Placement& placement) const {
    return !placement.offsets.empty() &&
           static_cast<double>(placement.end_bytes) <= kGoodEnough * static_cast<double>(bound_bytes_);
  }

  // Tries several orders of these chains and returns whether one of them is better than the best so far.
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
        // In the next round, place the chains at the top of the arena first.
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

  // As many rounds as cost little: the time of a placement grows with the square of the number of chains.
  static int repairs(std::size_t chains) {
    constexpr double kPairs = 1e6;
    constexpr double kMost = 40.0;
    const auto count = static_cast<double>(chains);
    return static_cast<int>(std::min(kMost, kPairs / (count * count)));
  }

  std::vector<Chain> make_chains(bool share) const {
    using Key = std::tuple<std::string_view, schedule::Term, std::int64_t,
                           int>;  // name, term, bytes, how often in a micro-step
    std::map<Key, std::size_t> chain_of;
    std::map<std::tuple<std::string_view, schedule::Term, std::int64_t>, std::pair<std::int32_t, int>> seen;
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
        add(chains[at->second], b);
        continue;
      }
      at->second = chains.size();
      chains.push_back(start_chain(b));
    }
    return chains;
  }

  Chain start_chain(std::size_t b) const {
    const Lifetime& life = lives_[b];
    Chain chain{{}, plan_.buffers[b].bytes(), life.first, life.first, life.released - life.first};
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      if (life.through[s] > 0)
        chain.last = std::max(chain.last, streams_[s][static_cast<std::size_t>(life.through[s]) - 1]);
    }
    chain.from = static_cast<OpId>(plan_.operations.size());
    chain.in_one_step = true;
    add(chain, b);
    return chain;
  }

  void add(Chain& chain, std::size_t b) const {
    const Lifetime& life = lives_[b];
    const auto micro_step = static_cast<std::size_t>(plan_.operations[static_cast<std::size_t>(life.first)].micro_step);
    chain.buffers.push_back(b);
    chain.from = std::min(chain.from, life.first - step_begins_[micro_step]);
    chain.until = std::max(chain.until, life.released - step_begins_[micro_step]);
    chain.in_one_step = chain.in_one_step && life.released <= step_begins_[micro_step + 1];
  }

  bool meet(const Chain& a, const Chain& b) const {
    if (a.in_one_step && b.in_one_step && (a.until <= b.from || b.until <= a.from)) return false;
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
    constexpr std::size_t kMostInBlock = 16;
    Placement placement;
    placement.offsets.resize(chains.size());
    std::vector<Block> blocks;  // by offset
    for (const std::size_t c : sequence) {
      const std::int64_t offset = lowest_offset(chains, placement, blocks, chains[c], from_bytes);
      placement.offsets[c] = offset;
      placement.end_bytes = std::max(placement.end_bytes, offset + chains[c].bytes);
      if (blocks.empty()) blocks.emplace_back(chains, placement);
      auto at = std::upper_bound(blocks.begin() + 1, blocks.end(), offset,
                                 [](std::int64_t o, const Block& block) { return o < block.begin_bytes(); }) -
                1;
      at->insert(c);
      if (at->placed().size() <= kMostInBlock) continue;
      Block upper = at->split();
      blocks.insert(at + 1, std::move(upper));
    }
    return placement;
  }

  // Returns the lowest offset at which `chain` conflicts with no placed chain.
  std::int64_t lowest_offset(const std::vector<Chain>& chains, const Placement& placement,
                             const std::vector<Block>& blocks, const Chain& chain, std::int64_t from_bytes) const {
    std::int64_t offset = from_bytes;
    for (const Block& block : blocks) {
      if (block.end_bytes() <= offset || block.none_meets(chain)) continue;
      if (block.all_meet(chain) && block.largest_gap_bytes() < chain.bytes) {
        if (offset + chain.bytes <= block.begin_bytes()) return offset;
        offset = block.end_bytes();
        continue;
      }
      for (const std::size_t other : block.placed()) {
        const std::int64_t end = align_up(placement.offsets[other] + chains[other].bytes);
        if (end <= offset || !meet(chain, chains[other])) continue;
        if (offset + chain.bytes <= placement.offsets[other]) return offset;
        offset = end;
      }
    }
    return offset;
  }

  const StepPlan& plan_;
  const std::vector<Lifetime>& lives_;
  const std::array<std::vector<OpId>, schedule::kStreamCount>& streams_;
  std::vector<OpId> step_begins_;  ///< by micro-step: its first operation; and the end
  std::vector<std::size_t> kept_, transient_;
  std::int64_t bound_bytes_ = 0;
};

}  // namespace

void lay_out(StepPlan& plan) {
  const Lifetimes lives = lifetimes(plan);
  for (Buffer& buffer : plan.buffers) buffer.offset_bytes = -1;
  plan.arena_bytes = Layout(plan, lives, schedule::Place::kDevice).run(plan.buffers);
  plan.host_arena_bytes = Layout(plan, lives, schedule::Place::kHost).run(plan.buffers);
}

namespace {

std::string place_text(const Operation& operation, std::int64_t micro_steps) {
  std::string text = schedule::to_string(operation.phase);
  if (operation.phase == schedule::Phase::kOptimizer) return text;
  text += operation.layer >= 0 ? fmt::format(" of block {}", operation.layer)
                               : fmt::format(" ({})", to_string(operation.kind));
  if (micro_steps > 1) text += fmt::format(", micro-step {}", operation.micro_step);
  return text;
}

PlaceReport explain(const StepPlan& plan, const Lifetimes& lives, schedule::Place place, std::int64_t arena_bytes) {
  const LivePeak peak = live_peak(plan, lives, place);
  PlaceReport report;
  report.peak_bytes = arena_bytes;
  report.lower_bound_bytes = peak.bytes;
  report.fragmentation_bytes = arena_bytes - peak.bytes;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (peak.is_live[b]) report.term_bytes[static_cast<std::size_t>(plan.buffers[b].term)] += plan.buffers[b].bytes();
  }
  if (peak.at >= 0) report.peak_at = place_text(plan.operations[static_cast<std::size_t>(peak.at)], plan.micro_steps);
  return report;
}

}  // namespace

MemoryReport explain(const StepPlan& plan) {
  const Lifetimes lives = lifetimes(plan);
  MemoryReport report;
  static_cast<PlaceReport&>(report) = explain(plan, lives, schedule::Place::kDevice, plan.arena_bytes);
  report.host = explain(plan, lives, schedule::Place::kHost, plan.host_arena_bytes);
  return report;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kUncertain:
      return "uncertain";
    case Verdict::kTooLarge:
      return "too_large";
  }
  assert(false);
  return "";
}

MemoryVerdict exact_verdict(Bytes predicted, Bytes usable) {
  const bool fits = predicted <= usable;
  return {fits ? Verdict::kFits : Verdict::kTooLarge, fits ? 1.0 : 0.0, predicted};
}

WireBytes wire_bytes(const StepPlan& plan) {
  WireBytes sent;
  for (const Operation& operation : plan.operations) {
    if (is_collective(operation.kind) && operation.operands.front().range.elems == 1) continue;
    const bool reduces_all =
        operation.kind == schedule::OpKind::kAllReduce || operation.kind == schedule::OpKind::kAllReduceMax;
    if (reduces_all) sent.all_reduce += operation.wire_bytes;
    if (operation.kind == schedule::OpKind::kReduceScatter) sent.reduce_scatter += operation.wire_bytes;
    if (operation.kind == schedule::OpKind::kAllGather) sent.all_gather += operation.wire_bytes;
  }
  return sent;
}

}  // namespace krigtune::plan
