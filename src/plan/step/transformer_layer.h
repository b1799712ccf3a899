#pragma once
#include "step/step_operations.h"

namespace krigtune {

/// What becomes of a layer's tensors after forward: Term::kActivations is kept for backward, what is Term::kWorkspace
/// while the rest is kept is computed again.
struct LayerTerms {
  Term rest = Term::kActivations;
  Term norms = Term::kActivations;      ///< their outputs
  Term core = Term::kActivations;       ///< the probabilities of eager attention, with their dropout
  Term activated = Term::kActivations;  ///< output of the MLP's activation
  Term output = Term::kActivations;     ///< of the layer: the input of the next one

  bool computes_again(Term part) const { return part != rest; }
};
/// Of a layer whose forward is kept (not Checkpointing::kFull).
LayerTerms kept_layer(Checkpointing checkpointing, Attention attention);
/// Of a layer that leaves nothing but its output.
LayerTerms passing_layer(Term output);

struct AttentionBuffers {
  BufferId input = -1, norm = -1, stats = -1, qkv = -1, out = -1, logsumexp = -1;
  BufferId probabilities = -1, mask = -1, dropped = -1;  ///< of eager attention
  BufferId branch_mask = -1;
  BufferId output = -1;
};
struct MlpBuffers {
  BufferId input = -1, norm = -1, stats = -1, up = -1, activated = -1, branch_mask = -1;
  BufferId output = -1;
};

/// Pre-norm branches of a decoder layer, each added to the residual stream: causal attention with learned or rotary
/// positions and grouped queries; an MLP with GELU or SwiGLU.
AttentionBuffers attention_forward(StepOperations& to, const BlockTensors& block, BufferId input,
                                   const LayerTerms& terms);
MlpBuffers mlp_forward(StepOperations& to, const BlockTensors& block, BufferId input, const LayerTerms& terms);
/// Adds their gradients to the residual stream's. `kept` gets new buffers for what is computed again.
void attention_backward(StepOperations& to, const BlockTensors& block, AttentionBuffers& kept, const LayerTerms& terms,
                        BufferId residual_gradient);
void mlp_backward(StepOperations& to, const BlockTensors& block, MlpBuffers& kept, const LayerTerms& terms,
                  BufferId residual_gradient);

/// Both branches.
struct LayerBuffers {
  AttentionBuffers attention;
  MlpBuffers mlp;
};
LayerBuffers layer_forward(StepOperations& to, const BlockTensors& block, BufferId input, const LayerTerms& terms);
void layer_backward(StepOperations& to, const BlockTensors& block, LayerBuffers& kept, const LayerTerms& terms,
                    BufferId residual_gradient);

}  // namespace krigtune
