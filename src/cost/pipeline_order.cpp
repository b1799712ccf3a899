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
// of
//   one stage that is twice as large. No bubble if F = B = W.
#include "cost/pipeline_order.h"

#include <algorithm>
#include <array>
#include <cassert>
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

}  // namespace

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
    case PipelineSchedule::kOneForwardOneBackward:
      break;
  }
  assert(false);
  return {};
}

}  // namespace krigtune::cost
