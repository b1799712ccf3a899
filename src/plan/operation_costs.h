#pragma once
#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// Fills in FLOPs, bytes moved in memory and bytes sent, from kind, shape and operands; of the plan it reads the
/// buffers and the sizes of the groups.
void add_costs(Operation& operation, const StepPlan& plan);

}  // namespace krigtune
