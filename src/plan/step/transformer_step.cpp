// Full checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost"): of each group of layers only
// the input is kept. Before a group's backward its forward is added once more: the same operations on the same values,
// so that all sums and masks are the same to the bit.
#include "step/transformer_step.h"

#include <cassert>

namespace krigtune {

using schedule::Part;
using schedule::Unit;

TransformerStep::TransformerStep(PlanBuilder& builder, ZeroOperations& zero, const ParameterTable& table,
                                 const Workload& workload, const Knobs& knobs, BufferId loss)
    : table_(table),
      checkpointing_(knobs.checkpointing),
      operations_(builder, zero, workload, knobs),
      vocabulary_(operations_, table, loss),
      layers_(table.blocks.size()) {}

void TransformerStep::begin(const Part& part) {
  operations_.at(part.phase, part.layer);
  if (part.is(Unit::kEmbedding, Phase::kForward)) vocabulary_.load_batch();
  if (part.is(Unit::kHead, Phase::kForward)) {
    residual_gradient_ = operations_.own("residual gradient", Term::kWorkspace, operations_.sizes().hidden);
  }
}

void TransformerStep::add(const Part& part) {
  if (part.begins_use) operations_.zero().begin_use();
  switch (part.unit) {
    case Unit::kEmbedding:
      return add_embedding(part);
    case Unit::kBlock:
      return add_block(part);
    case Unit::kHead:
      return add_head(part);
  }
  assert(false);
}

void TransformerStep::add_embedding(const Part& part) {
  if (part.phase == Phase::kForward) {
    residual_ = vocabulary_.embed();
  } else {
    vocabulary_.embed_backward(residual_gradient_);
  }
}

void TransformerStep::add_head(const Part& part) {
  if (part.phase == Phase::kForward) {
    vocabulary_.head(residual_);
  } else {
    vocabulary_.head_backward(residual_gradient_);
  }
}

void TransformerStep::add_block(const Part& part) {
  const BlockTensors& block = table_.blocks[static_cast<std::size_t>(part.layer)];
  LayerBuffers& buffers = layers_[static_cast<std::size_t>(part.layer)];
  if (part.phase == Phase::kBackward) {
    return layer_backward(operations_, block, buffers, terms_of(part), residual_gradient_);
  }
  const bool starts_again = part.phase == Phase::kRecompute && part.in_group == 0;
  if (starts_again) residual_ = buffers.attention.input;
  buffers = layer_forward(operations_, block, residual_, terms_of(part));
  residual_ = buffers.mlp.output;
}

LayerTerms TransformerStep::terms_of(const Part& part) const {
  if (checkpointing_ != Checkpointing::kFull) return kept_layer(checkpointing_, operations_.model().attention);
  const bool leaves_checkpoint = part.phase == Phase::kForward && part.closes_group;
  return passing_layer(leaves_checkpoint ? Term::kActivations : Term::kWorkspace);
}

}  // namespace krigtune
