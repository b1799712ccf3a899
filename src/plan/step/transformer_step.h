#pragma once
#include <vector>

#include "krigtune/schedule/walk.h"
#include "step/transformer_layer.h"
#include "step/vocabulary_part.h"

namespace krigtune {

/// The operations of a pre-norm decoder: GPT-2 style (Radford et al. 2019), Llama style (Touvron et al. 2023), or a
/// mixture. It is told the parts of a micro-step, and adds each part's operations to the plan.
class TransformerStep final : public schedule::PartSink {
 public:
  TransformerStep(PlanBuilder& builder, ZeroOperations& zero, const ParameterTable& table, const Workload& workload,
                  const Knobs& knobs, BufferId loss);
  void begin_micro_step(std::int64_t micro_step) { operations_.begin_micro_step(micro_step); }

  void begin(const schedule::Part& part) override;
  void add(const schedule::Part& part) override;

 private:
  void add_embedding(const schedule::Part& part);
  void add_block(const schedule::Part& part);
  void add_head(const schedule::Part& part);
  LayerTerms terms_of(const schedule::Part& part) const;

  const ParameterTable& table_;
  Checkpointing checkpointing_;
  StepOperations operations_;
  VocabularyPart vocabulary_;
  std::vector<LayerBuffers> layers_;  ///< what backward finds
  BufferId residual_ = -1;            ///< what the next part reads
  BufferId residual_gradient_ = -1;
};

}  // namespace krigtune
