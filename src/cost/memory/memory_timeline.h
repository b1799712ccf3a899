#pragma once
#include <string>

#include "memory/gathered_memory.h"
#include "memory/reduction_memory.h"

namespace krigtune {

/// The moment of a step at which most bytes are in use beside what is there all the time.
struct StepPeak {
  MomentBytes bytes;
  Phase phase = Phase::kForward;
  std::int64_t layer = -1;  ///< -1: embedding or head
  std::int64_t micro_step = 0;
  bool at_head = false;
};

/// Micro-steps after which a step repeats itself, and no more than it has.
std::int64_t distinct_micro_steps(const Workload& workload, const Knobs& knobs);

/// Of krigtune-bench: activations, logits, workspace, gathered parameters, gradients on their way. Walks the parts of
/// its distinct micro-steps.
StepPeak step_peak(const MemoryProfile& profile, const ModelTensors& model, const StageShape& stage,
                   const Workload& workload, const Knobs& knobs, const ReductionHabits& habits = {});

}  // namespace krigtune
