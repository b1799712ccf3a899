#pragma once
#include "krigtune/plan/step_plan.h"
#include "krigtune/space/configuration.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// Whose schedule: kCanonical is reduce-scatter based, as in the ZeRO paper (Rajbhandari et al. 2020) and Megatron.
enum class Dialect { kCanonical };

/// The schedule of one optimizer step and its memory, as data. A pure function.
///
/// Understood of the configuration: zero_stage (0-3, default 0), micro_batch (default 1),
/// gradient_accumulation_steps (default 1), reduce_bucket_size and allgather_bucket_size (elements, default 5e8),
/// overlap_comm (default false). Throws UserError for what it does not model (other knobs that would change the step,
/// gated MLPs, rotary positions, RMS norm, grouped heads, untied heads, precisions other than fp32, SGD) and for sizes
/// that make no model.
StepPlan build_plan(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration,
                    Dialect dialect = Dialect::kCanonical);

}  // namespace krigtune
