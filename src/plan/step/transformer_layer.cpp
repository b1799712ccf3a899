// What selective checkpointing computes again: with eager attention the attention core, whose 5 a s^2 b bytes cost few
// FLOPs (Korthikanti et al. 2022, section 5); with flash attention, which keeps no such thing, the outputs of the norms
// and of the MLP's activation (as llm.c's recompute = 2).
#include "step/transformer_layer.h"

#include <cassert>

namespace krigtune {

LayerTerms kept_layer(Checkpointing checkpointing, Attention attention) {
  assert(checkpointing != Checkpointing::kFull);
  LayerTerms terms;
  if (checkpointing == Checkpointing::kNone) return terms;
  if (attention == Attention::kEager) {
    terms.core = Term::kWorkspace;
  } else {
    terms.norms = Term::kWorkspace;
    terms.activated = Term::kWorkspace;
  }
  return terms;
}

LayerTerms passing_layer(Term output) {
  return {Term::kWorkspace, Term::kWorkspace, Term::kWorkspace, Term::kWorkspace, output};
}

LayerBuffers layer_forward(StepOperations& to, const BlockTensors& block, BufferId input, const LayerTerms& terms) {
  LayerBuffers buffers;
  buffers.attention = attention_forward(to, block, input, terms);
  buffers.mlp = mlp_forward(to, block, buffers.attention.output, terms);
  return buffers;
}

void layer_backward(StepOperations& to, const BlockTensors& block, LayerBuffers& kept, const LayerTerms& terms,
                    BufferId residual_gradient) {
  mlp_backward(to, block, kept.mlp, terms, residual_gradient);
  attention_backward(to, block, kept.attention, terms, residual_gradient);
}

}  // namespace krigtune
