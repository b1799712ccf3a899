// Full checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost"): of each group of layers only
// the input is kept. Before a group's backward its forward is added once more: the same operations on the same values,
// so that all sums and masks are the same to the bit.
#include "step/transformer_step.h"

namespace krigtune {

TransformerStep::TransformerStep(PlanBuilder& builder, ZeroSchedule& zero, const ParameterTable& table,
                                 const Workload& workload, const Knobs& knobs, BufferId loss)
    : table_(table),
      knobs_(knobs),
      operations_(builder, zero, workload, knobs),
      vocabulary_(operations_, table, loss),
      groups_(layer_groups(workload.model.layers, knobs)),
      layers_(table.blocks.size()) {}

void TransformerStep::add_micro_step(std::int64_t micro_step) {
  operations_.begin_micro_step(micro_step);
  operations_.at(Phase::kForward);
  BufferId x = vocabulary_.embed();
  for (const LayerGroup& group : groups_) {
    for (std::int64_t layer = group.begin; layer < group.end; ++layer) {
      operations_.at(Phase::kForward, layer);
      x = forward(layer, x, forward_terms(group, layer));
    }
  }
  const BufferId residual_gradient = operations_.own("residual gradient", Term::kWorkspace, operations_.sizes().hidden);
  vocabulary_.head(x, residual_gradient);
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) backward(*group, residual_gradient);
  operations_.at(Phase::kBackward);
  vocabulary_.embed_backward(residual_gradient);
  operations_.zero().end_micro_step();
}

LayerTerms TransformerStep::forward_terms(const LayerGroup& group, std::int64_t layer) const {
  if (!checkpoints()) return kept_layer(knobs_.checkpointing, operations_.model().attention);
  return passing_layer(layer + 1 == group.end ? Term::kActivations : Term::kWorkspace);
}

BufferId TransformerStep::forward(std::int64_t layer, BufferId input, const LayerTerms& terms) {
  operations_.zero().begin_use();
  LayerBuffers& buffers = layers_[static_cast<std::size_t>(layer)];
  buffers = layer_forward(operations_, block(layer), input, terms);
  return buffers.mlp.output;
}

void TransformerStep::backward(const LayerGroup& group, BufferId residual_gradient) {
  if (checkpoints()) compute_again(group);
  const LayerTerms terms = forward_terms(group, group.begin);
  for (std::int64_t layer = group.end - 1; layer >= group.begin; --layer) {
    operations_.at(Phase::kBackward, layer);
    // The last layer's parameters are still there from its second forward.
    if (!checkpoints() || layer + 1 < group.end) operations_.zero().begin_use();
    layer_backward(operations_, block(layer), layers_[static_cast<std::size_t>(layer)], terms, residual_gradient);
  }
}

void TransformerStep::compute_again(const LayerGroup& group) {
  BufferId x = layers_[static_cast<std::size_t>(group.begin)].attention.input;
  for (std::int64_t layer = group.begin; layer < group.end; ++layer) {
    operations_.at(Phase::kRecompute, layer);
    x = forward(layer, x, passing_layer(Term::kWorkspace));
  }
}

}  // namespace krigtune
