#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/pipeline.h"

namespace krigtune::cost {

/// What a rank does with a micro-step on one of its stages. kBackward is the whole backward pass, or its gradients of
/// inputs where those of weights are apart.
enum class PassWork : std::uint8_t { kForward, kBackward, kWeights };
struct StagePass {
  PassWork work{};
  std::size_t stage = 0;
  std::size_t micro_step = 0;
  bool whole = false;      ///< kBackward with gradients of weights, although the schedule makes others apart
  bool with_next = false;  ///< a pair with the next pass: both inputs come before, and both results go after it
};

/// Returns whether the schedule repeats a block of six passes, in which every rank's order depends on those of the
/// others.
bool repeats_blocks(schedule::PipelineSchedule schedule);

/// Returns all passes of a rank in a step, in its order. For every schedule but 1F1B, which is not listed. `group`: of
/// several stages on a rank, with kZeroBubbleH1: the micro-steps that pass one before the rank goes on to the next.
std::vector<StagePass> passes_of_rank(const PipelineShape& shape, std::size_t rank, std::size_t micro_steps,
                                      std::size_t group);
/// Returns the same for every rank.
std::vector<std::vector<StagePass>> passes_of_ranks(const PipelineShape& shape, std::size_t micro_steps,
                                                    std::size_t group);

}  // namespace krigtune::cost
