#pragma once
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::cost {

/// Returns for each operation of the plan the product beside which it can run, or -1: for the collectives of the tensor
/// group in a backward pass, the product of the same linear layer that neither reads what they gather nor makes what
/// they reduce. A product is given to one collective only.
///
/// A column-parallel layer has two (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2; Megatron-LM's
/// LinearWithGradAccumulationAndAsyncCommunication): its input is gathered again beside the product for the input's
/// gradient, and that gradient is reduced beside the product for the weight's. A row-parallel layer has none, because
/// both its products read the gradient that is gathered.
std::vector<plan::OpId> products_beside_collectives(const plan::StepPlan& plan);

/// Returns the seconds by which a collective makes a product beside it end later, where the product takes `slowdown`
/// times as long while the collective runs.
double exposed_beside_s(double collective_s, double product_s, double slowdown);

}  // namespace krigtune::cost
