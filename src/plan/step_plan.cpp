#include "plan/step_plan.h"

#include "plan/op_traits.h"

namespace krigtune::plan {

double hardware_flops(const StepPlan& plan) {
  double flops = 0.0;
  for (const Operation& operation : plan.operations) {
    if (is_product(operation.kind)) flops += operation.flops;
  }
  return flops;
}

}  // namespace krigtune::plan
