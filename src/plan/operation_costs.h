#pragma once
#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// Fills in FLOPs, bytes moved in memory and bytes sent, from kind, shape and operands.
void add_costs(Operation& operation, std::int64_t ranks);

}  // namespace krigtune
