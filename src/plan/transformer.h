#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "plan/experts.h"
#include "plan/latent_attention.h"
#include "plan/mixers.h"
#include "plan/step_operations.h"
#include "plan/vocabulary.h"
#include "schedule/walk.h"

namespace krigtune::plan {

/// What happens to a layer's tensors after forward. Term::kActivations is kept for backward. A part with
/// Term::kWorkspace is recomputed if the rest is kept.
struct LayerTerms {
  schedule::Term rest = schedule::Term::kActivations;
  schedule::Term norms = schedule::Term::kActivations;      ///< outputs of the norms
  schedule::Term core = schedule::Term::kActivations;       ///< probabilities of eager attention and their dropout
  schedule::Term activated = schedule::Term::kActivations;  ///< output of the MLP's activation
  schedule::Term output = schedule::Term::kActivations;     ///< output of the layer, which is the input of the next one

  bool computes_again(schedule::Term part) const { return part != rest; }
};
/// For a layer whose forward is kept (not Checkpointing::kFull).
LayerTerms kept_layer(schedule::Checkpointing checkpointing, workload::Attention attention);
/// For a layer that keeps only its output.
LayerTerms passing_layer(schedule::Term output);

struct AttentionBuffers {
  BufferId input = -1, norm = -1, qkv = -1, out = -1, logsumexp = -1;
  KeptByNorm of_norm, of_post_norm;
  BufferId before_norm = -1, qk_stats = -1, normalised = -1;  ///< of queries and keys
  LatentBuffers latent;
  MixerBuffers mixer;                                    ///< in place of attention
  BufferId probabilities = -1, mask = -1, dropped = -1;  ///< for eager attention
  BufferId branch_mask = -1;
  BufferId branch = -1;  ///< the branch's output before its norm
  BufferId output = -1;
};
struct MlpBuffers {
  BufferId input = -1, norm = -1, up = -1, gate = -1, activated = -1, branch_mask = -1;
  KeptByNorm of_norm, of_post_norm;
  BufferId branch = -1;
  BufferId output = -1;
  ExpertBuffers experts;
};

/// Buffers of both branches, of which a layer may have only one.
struct LayerBuffers {
  AttentionBuffers attention;
  MlpBuffers mlp;
  BufferId input = -1, output = -1;  ///< of the layer
};

/// The branches of a decoder layer, with norms before or after them (workload::NormPlaces), each added to the residual
/// stream: causal attention with learned or rotary positions and grouped queries, or of latents, or another mixer
/// (plan/mixers.h), and an MLP with GELU or SwiGLU, or experts of that kind.
AttentionBuffers attention_forward(StepOperations& to, const schedule::BlockTensors& block, BufferId input,
                                   const LayerTerms& terms);
MlpBuffers mlp_forward(StepOperations& to, const schedule::BlockTensors& block, const AttentionBuffers& attention,
                       const LayerTerms& terms);
/// Adds the gradients of the branches to the residual stream's. `kept` receives new buffers for recomputed values. The
/// MLP's gradient of a norm that both share is returned, and given to attention's.
void attention_backward(StepOperations& to, const schedule::BlockTensors& block, LayerBuffers& kept,
                        const LayerTerms& terms, BufferId residual_gradient, const std::optional<Operand>& shared);
std::optional<Operand> mlp_backward(StepOperations& to, const schedule::BlockTensors& block, LayerBuffers& kept,
                                    const LayerTerms& terms, BufferId residual_gradient);

LayerBuffers layer_forward(StepOperations& to, const schedule::BlockTensors& block, BufferId input,
                           const LayerTerms& terms);
void layer_backward(StepOperations& to, const schedule::BlockTensors& block, LayerBuffers& kept,
                    const LayerTerms& terms, BufferId residual_gradient);

class MtpLayers;

/// The operations of a pre-norm decoder: GPT-2 style (Radford et al. 2019), Llama style (Touvron et al. 2023), or a
/// mixture. It receives the parts of a micro-step and adds each part's operations to the plan.
class TransformerStep final : public schedule::PartSink {
 public:
  TransformerStep(PlanBuilder& builder, ZeroOperations& zero, const schedule::ParameterTable& table,
                  const workload::Workload& workload, const schedule::Knobs& knobs, BufferId loss);
  ~TransformerStep() override;
  void begin_micro_step(std::int64_t micro_step) { operations_.begin_micro_step(micro_step); }

  void begin(const schedule::Part& part) override;
  void add(const schedule::Part& part) override;

 private:
  void add_embedding(const schedule::Part& part);
  void add_block(const schedule::Part& part);
  void add_head(const schedule::Part& part);
  LayerTerms terms_of(const schedule::Part& part) const;
  LayerTerms terms_of_mtp(bool leaves_output) const;

  const schedule::ParameterTable& table_;
  schedule::Checkpointing checkpointing_;  ///< kNone if modules are computed again
  StepOperations operations_;
  VocabularyPart vocabulary_;
  std::unique_ptr<MtpLayers> mtp_;    ///< empty if no further tokens are predicted
  std::vector<LayerBuffers> layers_;  ///< kept for backward
  BufferId residual_ = -1;            ///< input of the next part
  BufferId residual_gradient_ = -1;
};

}  // namespace krigtune::plan
