#pragma once
#include <string>

#include "krigtune/schedule/setting.h"
#include "memory/memory_profile.h"

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
std::int64_t distinct_micro_steps(const ZeroPolicy& policy, const Knobs& knobs);

/// Activations, logits, workspace, gathered parameters, gradients on their way: the schedule's distinct micro-steps
/// walked, of a stage that keeps the activations of `in_flight` micro-batches at once.
StepPeak step_peak(const MemoryProfile& profile, const schedule::Setting& setting, std::int64_t in_flight = 1);

}  // namespace krigtune
