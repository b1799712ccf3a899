// The MLP branch of a layer: norm, up (and gate), activation, down, dropout.
#include "step/transformer_layer.h"

namespace krigtune {
namespace {

void activate(StepOperations& to, const MlpBuffers& buffers) {
  const StepSizes& n = to.sizes();
  to.add(to.model().gated_mlp ? OpKind::kSwigluForward : OpKind::kGeluForward, {.rows = n.rows, .inner = n.ffn},
         {reads(buffers.up, n.rows * n.up), writes(buffers.activated, n.rows * n.ffn)});
}

// GELU's gradient takes the place of its output's; SwiGLU's is wider.
BufferId activation_backward(StepOperations& to, const MlpBuffers& kept, BufferId dactivated) {
  const StepSizes& n = to.sizes();
  const Shape shape{.rows = n.rows, .inner = n.ffn};
  const Operand up = reads(kept.up, n.rows * n.up);
  if (!to.model().gated_mlp) {
    to.add(OpKind::kGeluBackward, shape, {up, updates(dactivated, n.rows * n.ffn)});
    return dactivated;
  }
  const BufferId dup = to.all("up gradient", Term::kWorkspace, n.up);
  to.add(OpKind::kSwigluBackward, shape, {up, reads(dactivated, n.rows * n.ffn), writes(dup, n.rows * n.up)});
  return dup;
}

}  // namespace

MlpBuffers mlp_forward(StepOperations& to, const BlockTensors& block, BufferId input, const LayerTerms& terms) {
  const StepSizes& n = to.sizes();
  MlpBuffers buffers;
  buffers.input = input;
  buffers.norm = to.own("norm2", terms.norms, n.hidden);
  buffers.stats = to.norm_stats("norm2 stats", terms.rest);
  buffers.up = to.all("up", terms.rest, n.up);
  buffers.activated = to.all("activated", terms.activated, n.ffn);
  buffers.output = to.own("block output", terms.output, n.hidden);

  to.norm_forward(input, block.norm2, buffers.norm, buffers.stats);
  to.column_forward(buffers.norm, block.up, buffers.up, n.up);
  activate(to, buffers);
  to.row_forward(buffers.activated, block.down, buffers.output, n.ffn);
  buffers.branch_mask = to.dropout_forward(buffers.output, kMlpSite, terms.rest);
  to.add(OpKind::kAdd, {}, {to.own_updates(buffers.output), to.own_reads(input)});
  return buffers;
}

void mlp_backward(StepOperations& to, const BlockTensors& block, MlpBuffers& kept, const LayerTerms& terms,
                  BufferId residual_gradient) {
  const StepSizes& n = to.sizes();
  if (terms.computes_again(terms.activated)) {
    to.in(Phase::kRecompute);
    kept.activated = to.all("activated again", Term::kWorkspace, n.ffn);
    activate(to, kept);
    to.in(Phase::kBackward);
  }
  const BufferId branch = to.branch_gradient(residual_gradient, kept.branch_mask, kMlpSite);
  const BufferId dactivated = to.all("activated gradient", Term::kWorkspace, n.ffn);
  to.row_backward(branch, kept.activated, block.down, dactivated, n.ffn);
  const BufferId dup = activation_backward(to, kept, dactivated);
  if (terms.computes_again(terms.norms)) {
    to.in(Phase::kRecompute);
    kept.norm = to.own("norm2 again", Term::kWorkspace, n.hidden);
    to.norm_forward(kept.input, block.norm2, kept.norm, kept.stats);
    to.in(Phase::kBackward);
  }
  const Operand dnorm = to.column_backward(dup, kept.norm, block.up, n.up, "norm2 gradient");
  to.norm_backward(dnorm, kept.input, block.norm2, kept.stats, to.own_updates(residual_gradient));
}

}  // namespace krigtune
