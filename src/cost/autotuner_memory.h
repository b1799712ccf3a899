#pragma once
#include "krigtune/cost/memory_model.h"
#include "memory_profile.h"

namespace krigtune {

/// What DeepSpeed's autotuner believes that a configuration needs: for comparison only.
MemoryEstimate deepspeed_autotuner_estimate(const MemoryProfile& profile, const Workload& workload, const Knobs& knobs);

}  // namespace krigtune
