#pragma once
#include <vector>

#include "step/transformer_layer.h"
#include "step/unit_uses.h"
#include "step/vocabulary_part.h"

namespace krigtune {

/// Adds forward and backward of one micro-step of a pre-norm decoder: GPT-2 style (Radford et al. 2019), Llama style
/// (Touvron et al. 2023), or a mixture. Returns nothing: the schedule is in the plan.
class TransformerStep {
 public:
  TransformerStep(PlanBuilder& builder, ZeroSchedule& zero, const ParameterTable& table, const Workload& workload,
                  const Knobs& knobs, BufferId loss);
  void add_micro_step(std::int64_t micro_step);

 private:
  BufferId forward(std::int64_t layer, BufferId input, const LayerTerms& terms);
  void backward(const LayerGroup& group, BufferId residual_gradient);
  void compute_again(const LayerGroup& group);
  LayerTerms forward_terms(const LayerGroup& group, std::int64_t layer) const;
  bool checkpoints() const { return knobs_.checkpointing == Checkpointing::kFull; }
  const BlockTensors& block(std::int64_t layer) const { return table_.blocks[static_cast<std::size_t>(layer)]; }

  const ParameterTable& table_;
  Knobs knobs_;
  StepOperations operations_;
  VocabularyPart vocabulary_;
  std::vector<LayerGroup> groups_;
  std::vector<LayerBuffers> layers_;  ///< what backward finds
};

}  // namespace krigtune
