// The orders that Qi et al. 2024 ("Zero bubble pipeline parallelism", arXiv:2401.10241) draw for equal times of
// forward, gradients of inputs and gradients of weights (F, B, W), whatever the times are. Rank r of p, counted from 0:
//
// - H1 (figure 3, above): the warm-up of 1F1B; then F, B and, once r micro-steps wait for their W, one W each time. The
//   ranks keep p - r passes and r waiting ones. Bubble: (p - 1) (F + B - W) where B >= W. With several stages on a rank
//   (torch/distributed/pipelining/schedules.py, ScheduleInterleavedZeroBubble) the warm-up has p - r - 1 forwards
//   beyond (v - 1) groups.
// - H2 (figure 3, below): 2 (p - r) - 1 forwards before the first B, and 2 r micro-steps that wait for their W. Bubble:
//   (p - 1) (F + B - 2 W) where B >= W, if ranks do not wait for each other between steps.
// - V (section 6, and ScheduleZBVZeroBubble): each rank keeps up to 2 p passes of its two stages, as much as p passes
//   of one stage that is twice as large. No bubble if F = B = W.
//
// Qi et al. 2024 ("Pipeline parallelism with controllable memory", arXiv:2405.15362) repeat a block of six passes of
// one micro-step every six units of time, in a V, and let gradients of weights fill what is free. How long a rank keeps
// a pass follows from where its block has forward and backward. Then passes of the warm-up and of the end move to
// earlier free units, as long as no rank keeps more than the busiest one did (their zbv_greedy.py):
//
// - V-half: p + 2 passes of the two stages (p even), V-min: about 2 p / 3 + 3. The bubbles tend to 1/2 and 2/3 of that
//   of 1F1B.
//
// DualPipeV (DeepSeek's DualPipe, arXiv:2412.19437, cut in half; torch's ScheduleDualPipeV): forward passes of one
// stage in pairs with whole backward passes of the other one. Bubble: (p - 1) (F + 2 B - W) for times of one stage, if
// B (without W) = W. Each rank keeps 2 p + 1 passes.
#include "cost/pipeline_order.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <deque>
#include <tuple>
#include <utility>

namespace krigtune::cost {
namespace {

using schedule::PipelineSchedule;

// Passes through the stages of a rank one after the other, in groups of micro-steps.
class Alternating {
 public:
  Alternating(const PipelineShape& shape, std::size_t rank, std::size_t micro_steps, std::size_t group)
      : ranks_(static_cast<std::size_t>(shape.ranks)),
        stages_of_rank_(static_cast<std::size_t>(shape.stages_of_rank)),
        rank_(rank),
        passes_(micro_steps * stages_of_rank_),
        group_(group) {}

  /// `lag`: passes that wait for their gradients of weights before one is made after each backward.
  std::vector<StagePass> list(std::size_t warm_up, bool splits, std::size_t lag) {
    std::size_t forward = 0, backward = 0, weights = 0;
    while (forward < std::min(warm_up, passes_)) add(PassWork::kForward, forward++);
    while (backward < passes_) {
      if (forward < passes_) add(PassWork::kForward, forward++);
      add(PassWork::kBackward, backward++);
      if (splits && backward - weights > lag) add(PassWork::kWeights, weights++);
    }
    while (splits && weights < passes_) add(PassWork::kWeights, weights++);
    return std::move(list_);
  }

 private:
  // The n-th pass of one kind.
  void add(PassWork work, std::size_t n) {
    if (stages_of_rank_ == 1) return list_.push_back({work, rank_, n});
    const std::size_t round = group_ * stages_of_rank_;
    const std::size_t turn = n % round / group_;
    const std::size_t stage = work == PassWork::kForward ? turn : stages_of_rank_ - 1 - turn;
    list_.push_back({work, stage * ranks_ + rank_, n / round * group_ + n % group_});
  }

  std::size_t ranks_, stages_of_rank_, rank_;
  std::size_t passes_;
  std::size_t group_;
  std::vector<StagePass> list_;
};

// With fewer than 2 p - 1 micro-steps the list is that of 2 p - 1, without those that do not exist.
class Vee {
 public:
  Vee(std::size_t ranks, std::size_t rank, std::size_t micro_steps)
      : ranks_(ranks), rank_(rank), micro_steps_(micro_steps), listed_steps_(std::max(micro_steps, 2 * ranks - 1)) {}

  std::vector<StagePass> list() {
    warm_up();
    while (count(PassWork::kForward, kSecond) < listed_steps_) {
      if (count(PassWork::kForward, kFirst) < listed_steps_) add(PassWork::kForward, kFirst);
      add_backward(kFirst);
      add(PassWork::kForward, kSecond);
      add_backward(kSecond);
    }
    for (std::size_t i = 0; i < rank_; ++i) {
      add(PassWork::kBackward, kFirst);
      add(PassWork::kBackward, kSecond);
    }
    for (std::size_t i = rank_; i < ranks_; ++i) add_backward(kFirst);
    for (const std::size_t of : {kSecond, kFirst}) {
      while (count(PassWork::kWeights, of) < listed_steps_) add(PassWork::kWeights, of);
    }
    return std::move(list_);
  }

 private:
  static constexpr std::size_t kFirst = 0, kSecond = 1;  // stages of the rank

  void warm_up() {
    for (std::size_t i = 0; i < 2 * (ranks_ - rank_) - 1; ++i) add(PassWork::kForward, kFirst);
    for (std::size_t i = 0; i < rank_; ++i) {
      add(PassWork::kForward, kSecond);
      add(PassWork::kForward, kFirst);
    }
    for (std::size_t i = rank_; i < ranks_; ++i) {
      add(PassWork::kForward, kSecond);
      add_backward(kSecond);
    }
  }

  std::size_t& count(PassWork work, std::size_t of) { return counts_[static_cast<std::size_t>(work)][of]; }

  void add(PassWork work, std::size_t of) {
    const std::size_t micro_step = count(work, of)++;
    if (micro_step < micro_steps_) list_.push_back({work, of == kFirst ? rank_ : 2 * ranks_ - 1 - rank_, micro_step});
  }

  void add_backward(std::size_t of) {
    add(PassWork::kBackward, of);
    add(PassWork::kWeights, of);
  }

  std::size_t ranks_, rank_;
  std::size_t micro_steps_, listed_steps_;
  std::array<std::array<std::size_t, 2>, 3> counts_{};  // by PassWork and stage of the rank
  std::vector<StagePass> list_;
};

// The first 2 p forward passes have no partners, and the last backward passes make gradients of weights apart. With
// fewer than 2 p micro-steps the list is that of 2 p, without those that do not exist.
class DualVee {
 public:
  DualVee(std::size_t ranks, std::size_t rank, std::size_t micro_steps)
      : ranks_(ranks), rank_(rank), micro_steps_(micro_steps), listed_steps_(std::max(micro_steps, 2 * ranks)) {}

  std::vector<StagePass> list() {
    const std::size_t behind = ranks_ - rank_ - 1;
    for (std::size_t i = 0; i < 2 * behind; ++i) forward(kFirst);
    for (std::size_t i = 0; i <= rank_; ++i) {
      forward(kFirst);
      forward(kSecond);
    }
    for (std::size_t i = 0; i < behind; ++i) {
      backward(kSecond, true);
      weights();
      forward(kSecond);
    }
    for (std::size_t i = 0; i < listed_steps_ + rank_ + 1 - 2 * ranks_; ++i) {
      pair(kFirst, kSecond, i > 0 || behind > 0);
      pair(kSecond, kFirst, true);
    }
    for (std::size_t i = 0; i < behind; ++i) {
      backward(kSecond, false);
      pair(kSecond, kFirst, true);
    }
    finish(behind);
    return std::move(list_);
  }

 private:
  static constexpr std::size_t kFirst = 0, kSecond = 1;  // stages of the rank

  void finish(std::size_t behind) {
    const std::size_t half = (rank_ + 1) / 2;
    const bool odd = rank_ % 2 == 1;
    bool apart = false;
    for (std::size_t i = 0; i <= rank_; ++i) {
      apart = apart || (i == half && odd);
      backward(kSecond, apart);
      apart = apart || (i == half && !odd);
      backward(kFirst, apart);
    }
    for (std::size_t i = 0; i < behind; ++i) {
      weights();
      backward(kFirst, apart);
    }
    while (!waiting_.empty()) weights();
  }

  std::size_t stage(std::size_t of) const { return of == kFirst ? rank_ : 2 * ranks_ - 1 - rank_; }
  void add(const StagePass& pass) {
    if (pass.micro_step < micro_steps_) list_.push_back(pass);
  }
  void forward(std::size_t of, bool with_next = false) {
    add({PassWork::kForward, stage(of), forwards_[of]++, false, with_next});
  }
  void backward(std::size_t of, bool apart) {
    const std::size_t micro_step = backwards_[of]++;
    add({PassWork::kBackward, stage(of), micro_step, !apart});
    if (apart) waiting_.push_back({PassWork::kWeights, stage(of), micro_step});
  }
  void weights() {
    if (waiting_.empty()) return;
    add(waiting_.front());
    waiting_.pop_front();
  }
  // A backward pass exists if a forward pass that comes later does.
  void pair(std::size_t forwards, std::size_t backwards, bool together) {
    forward(forwards, together);
    backward(backwards, false);
  }

  std::size_t ranks_, rank_;
  std::size_t micro_steps_, listed_steps_;
  std::array<std::size_t, 2> forwards_{}, backwards_{};  // by stage of the rank
  std::deque<StagePass> waiting_;
  std::vector<StagePass> list_;
};

// The schedules of all ranks in units of time, in which every pass takes one.
class RepeatedBlocks {
 public:
  using Block = std::array<std::size_t, 4>;  // when a micro-step passes the rank: forward, forward, backward, backward

  RepeatedBlocks(const std::vector<Block>& blocks, std::size_t micro_steps)
      : ranks_(blocks.size()), steps_(micro_steps) {
    at_.resize(ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      std::size_t end = 0;
      for (std::size_t turn = 0; turn < 4; ++turn) {
        for (std::size_t m = 0; m < steps_; ++m) at_[rank][turn].push_back(blocks[rank][turn] + kPeriod * m);
        end = std::max(end, at_[rank][turn].back() + 1);
      }
      turns_.emplace_back(end, kFree);
      for (std::size_t turn = 0; turn < 4; ++turn) {
        for (const std::size_t unit : at_[rank][turn]) turns_[rank][unit] = static_cast<std::uint8_t>(turn);
      }
      most_ = std::max(most_, kept(rank));
    }
    move_earlier();
  }

  std::vector<StagePass> list(std::size_t rank) const {
    std::vector<StagePass> list;
    std::deque<StagePass> waiting;
    std::array<std::size_t, 4> next{};
    for (const std::uint8_t turn : turns_[rank]) {
      if (turn == kFree) {
        if (waiting.empty()) continue;
        list.push_back(waiting.front());
        waiting.pop_front();
        continue;
      }
      const auto of = static_cast<std::size_t>(turn);
      const std::size_t stage = of == 0 || of == 3 ? rank : 2 * ranks_ - 1 - rank;
      list.push_back({of < 2 ? PassWork::kForward : PassWork::kBackward, stage, next.at(of)++});
      if (of >= 2) waiting.push_back({PassWork::kWeights, stage, list.back().micro_step});
    }
    list.insert(list.end(), waiting.begin(), waiting.end());
    return list;
  }

 private:
  static constexpr std::size_t kPeriod = 6;
  static constexpr std::uint8_t kFree = 255;

  struct Event {
    std::size_t unit, rank, turn, micro_step;
  };

  // Most passes that a rank keeps, until its gradients of weights in the next free unit.
  std::int64_t kept(std::size_t rank) const {
    std::int64_t now = 0;
    std::int64_t most = 0;
    std::int64_t waiting = 0;
    for (const std::uint8_t turn : turns_[rank]) {
      if (turn == kFree) {
        now -= waiting > 0 ? 1 : 0;
        waiting -= waiting > 0 ? 1 : 0;
      } else {
        ++(turn < 2 ? now : waiting);
      }
      most = std::max(most, now);
    }
    return most;
  }

  // The first unit in which the pass may begin.
  std::size_t ready(const Event& of) const {
    std::size_t unit = 0;
    const auto behind = [&](std::size_t rank, std::size_t turn, std::size_t m) {
      unit = std::max(unit, at_[rank].at(turn)[m] + 1);
    };
    const bool goes_on = of.turn == 0 || of.turn == 2;  // to the next rank
    if (goes_on && of.rank > 0) behind(of.rank - 1, of.turn, of.micro_step);
    if (!goes_on && of.rank + 1 < ranks_) behind(of.rank + 1, of.turn, of.micro_step);
    if (of.turn > 0) behind(of.rank, of.turn - 1, of.micro_step);
    if (of.micro_step > 0) behind(of.rank, of.turn, of.micro_step - 1);
    return unit;
  }

  std::vector<Event> events() const {
    std::vector<Event> events;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t turn = 0; turn < 4; ++turn) {
        for (std::size_t m = 0; m < steps_; ++m) events.push_back({at_[rank].at(turn)[m], rank, turn, m});
      }
    }
    std::ranges::sort(events, {}, [](const Event& event) { return std::tuple(event.unit, event.rank, event.turn); });
    return events;
  }

  void move_earlier() {
    for (const Event& event : events()) {
      std::vector<std::uint8_t>& turns = turns_[event.rank];
      for (std::size_t unit = ready(event); unit < event.unit; ++unit) {
        if (turns[unit] != kFree) continue;
        std::swap(turns[unit], turns[event.unit]);
        if (kept(event.rank) <= most_) {
          at_[event.rank].at(event.turn)[event.micro_step] = unit;
          break;
        }
        std::swap(turns[unit], turns[event.unit]);
      }
    }
  }

  std::size_t ranks_, steps_;
  std::vector<std::array<std::vector<std::size_t>, 4>> at_;  // by rank, turn and micro-step
  std::vector<std::vector<std::uint8_t>> turns_;             // by rank and unit
  std::int64_t most_ = 0;                                    // that any rank keeps
};

// Of p ranks.
std::vector<RepeatedBlocks::Block> blocks_of(PipelineSchedule schedule, std::size_t p) {
  std::vector<RepeatedBlocks::Block> blocks;
  for (std::size_t r = 0; r < p; ++r) {
    if (schedule == PipelineSchedule::kVMin) {
      const std::size_t pause = p % 3 == 0 ? 2 : 0;  // so that no two passes are in one unit
      blocks.push_back({r, 2 * p - r - 1, 2 * p + pause + r, 4 * p + pause - r - 1});
    } else {
      const std::size_t pause = p % 2 == 0 ? 3 : 0;
      blocks.push_back({2 * r, 3 * p - r - 2, 3 * p + pause + 2 * r - 1, 6 * p + pause - r - 2});
    }
  }
  return blocks;
}

}  // namespace

bool repeats_blocks(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::kVHalf || schedule == PipelineSchedule::kVMin;
}

std::vector<StagePass> passes_of_rank(const PipelineShape& shape, std::size_t rank, std::size_t micro_steps,
                                      std::size_t group) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  const std::size_t behind = ranks - rank - 1;
  const std::size_t of_groups = static_cast<std::size_t>(shape.stages_of_rank - 1) * group;
  Alternating alternating(shape, rank, micro_steps, group);
  switch (shape.schedule) {
    case PipelineSchedule::kGpipe:
      return alternating.list(micro_steps, false, 0);
    case PipelineSchedule::kZeroBubbleH1:
      return alternating.list(behind + of_groups, true, rank);
    case PipelineSchedule::kZeroBubbleH2:
      return alternating.list(2 * behind, true, 2 * rank);
    case PipelineSchedule::kZeroBubbleV:
      return Vee(ranks, rank, micro_steps).list();
    case PipelineSchedule::kVHalf:
    case PipelineSchedule::kVMin:
      return RepeatedBlocks(blocks_of(shape.schedule, ranks), micro_steps).list(rank);
    case PipelineSchedule::kDualPipeV:
      return DualVee(ranks, rank, micro_steps).list();
    case PipelineSchedule::kOneForwardOneBackward:
      break;
  }
  assert(false);
  return {};
}

std::vector<std::vector<StagePass>> passes_of_ranks(const PipelineShape& shape, std::size_t micro_steps,
                                                    std::size_t group) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  std::vector<std::vector<StagePass>> lists;
  if (repeats_blocks(shape.schedule)) {
    const RepeatedBlocks blocks(blocks_of(shape.schedule, ranks), micro_steps);
    for (std::size_t rank = 0; rank < ranks; ++rank) lists.push_back(blocks.list(rank));
    return lists;
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) lists.push_back(passes_of_rank(shape, rank, micro_steps, group));
  return lists;
}

}  // namespace krigtune::cost
