#pragma once
#include "plan/step_plan.h"

namespace krigtune::cost {

/// Returns whether all that an operation writes are gradients of parameters, so that the rest of the backward pass does
/// not wait for it. `plan` keeps gradients in persistent buffers.
bool only_makes_weight_gradients(const plan::StepPlan& plan, const plan::Operation& operation);

}  // namespace krigtune::cost
