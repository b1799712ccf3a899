#pragma once
#include "krigtune/plan/step_plan.h"
#include "krigtune/workload/rates.h"

namespace krigtune {

/// Of an operation that is no collective.
OpClass class_of(const Operation& operation);

}  // namespace krigtune
