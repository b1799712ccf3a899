#pragma once
#include "plan/step_operations.h"

namespace krigtune::plan {

/// The buffers of one block's experts.
struct ExpertBuffers {
  BufferId logits = -1;                ///< of the router, for the own tokens
  BufferId weights = -1, places = -1;  ///< how much, and in which rows, each own token's experts count
  BufferId routed = -1;                ///< the tokens of each expert, one expert after the other
  BufferId up = -1, gate = -1, activated = -1, outputs = -1;
  BufferId sums = -1;  ///< of each token's outputs
};

/// The gradient of the experts' y for all tokens that this rank sends, and where that of their x goes.
struct ExpertGradients {
  BufferId dy = -1;
  Operand dx;
};

/// A block's input of the experts: the own tokens, for the router, and all that this rank sends.
struct ExpertInput {
  BufferId own = -1, all = -1;
};

/// The experts of one block (Shazeer et al. 2017), in the order of MegaBlocks (Gale et al. 2022, "MegaBlocks: efficient
/// sparse training with mixture-of-experts"): a router chooses each token's experts, the tokens are ordered by expert
/// and pass products that are grouped by expert, and each token's outputs are summed with the router's weights. No
/// token is dropped, and all experts are taken to receive the same number of tokens. A bias of the second product is
/// taken to be added by one tensor rank.
///
/// Experts that work on a latent (workload::ExpertSpec) have a product before and one after them, of all tokens that
/// this rank sends, whose matrices are whole.
///
/// y receives this tensor rank's part of the sums for all tokens; with whole experts, the sums for the own tokens.
/// `rest` and `activated` say what is kept.
ExpertBuffers experts_forward(StepOperations& to, const schedule::BlockTensors& block, const ExpertInput& x, BufferId y,
                              schedule::Term rest, schedule::Term activated);
/// Computes `activated` again, in a new buffer.
void activate_experts_again(StepOperations& to, ExpertBuffers& kept);
/// `of.dx` receives, or is added, this tensor rank's part of the gradient of x, all tokens that this rank sends,
/// without the router's. Returns the gradient of the routing weights, which router_backward takes.
BufferId experts_backward(StepOperations& to, const schedule::BlockTensors& block, const ExpertBuffers& kept,
                          const ExpertGradients& of, BufferId x);
/// Adds the router's part to the gradient of x for the own tokens.
void router_backward(StepOperations& to, const schedule::BlockTensors& block, const ExpertBuffers& kept, BufferId x,
                     BufferId dweights, const Operand& dx);

}  // namespace krigtune::plan
