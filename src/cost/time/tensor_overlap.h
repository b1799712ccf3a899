#pragma once
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::cost {

/// The product beside which a collective of the tensor group runs.
struct Beside {
  plan::OpId product = -1;  ///< -1: none
  /// The product reads what is gathered, or makes what is reduced, so that they run beside each other piece by piece:
  /// as many pieces as tensor ranks, of which the first one's exchange, or the last one's, is alone.
  bool by_pieces = false;
};

/// Returns for each operation of the plan the product beside which it can run, if it is a collective of the tensor
/// group at a linear layer. A product is given to one collective only.
///
/// In a backward pass it is the product of the same layer that neither reads what is gathered nor makes what is
/// reduced. A column-parallel layer has two of them (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2;
/// Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication): its input is gathered again beside the product for
/// the input's gradient, and that gradient is reduced beside the product for the weight's. A row-parallel layer has
/// none, because both its products read the gradient that is gathered. `by_pieces`: all-gathers and reduce-scatters for
/// which this leaves none run beside the product that needs or makes the tokens (Transformer Engine's userbuffers).
std::vector<Beside> products_beside_collectives(const plan::StepPlan& plan, bool by_pieces);

/// Returns the seconds by which a collective makes the product beside it end later, where the product takes `slowdown`
/// times as long while the collective runs.
double exposed_beside_s(double collective_s, double product_s, double slowdown);
/// The same if they run by as many pieces as there are ranks.
double exposed_by_pieces_s(double collective_s, double product_s, double slowdown, double ranks);

}  // namespace krigtune::cost
