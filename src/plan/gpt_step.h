#pragma once
#include "knobs.h"
#include "parameters.h"
#include "plan_builder.h"
#include "zero_schedule.h"

namespace krigtune {

/// The units of a GPT (embedding, blocks, head) in the order in which one micro-step uses them: forward, then backward.
std::vector<std::vector<int>> unit_uses(const ParameterTable& table);
/// The tensors in the order in which backward completes their gradients.
std::vector<int> gradient_ready_order(const ParameterTable& table);

/// Adds forward and backward of one micro-step: pre-norm decoder with learned positions, causal attention, GELU MLP and
/// a head tied to the token table (Radford et al. 2019). Returns nothing: the schedule is in the plan.
class GptStep {
 public:
  GptStep(PlanBuilder& builder, ZeroSchedule& zero, const ParameterTable& table, const ModelSpec& model,
          const Knobs& knobs, std::int64_t ranks, BufferId loss);
  void add_micro_step(std::int64_t micro_step);

 private:
  /// What a block's forward leaves for its backward.
  struct Kept {
    BufferId input, norm1, stats1, qkv, attention, logsumexp, middle, norm2, stats2, up, activated;
  };

  BufferId activation(const char* name, std::int64_t width_elems);
  BufferId work(const char* name, std::int64_t width_elems);
  void norm_forward(BufferId x, int gain, int bias, BufferId y, BufferId stats);
  void norm_backward(BufferId dy, BufferId x, int gain, int bias, BufferId stats, Operand dx);
  void linear_forward(BufferId x, int weight, int bias, BufferId y, std::int64_t inner, std::int64_t outer);
  void linear_backward(BufferId dy, BufferId x, int weight, int bias, BufferId dx, std::int64_t inner,
                       std::int64_t outer);
  BufferId embed();
  BufferId block_forward(const BlockTensors& block, BufferId input, Kept& kept);
  void block_backward(const BlockTensors& block, const Kept& kept, BufferId residual_gradient);
  void head(BufferId input, BufferId residual_gradient);
  void embed_backward(BufferId residual_gradient);

  PlanBuilder& builder_;
  ZeroSchedule& zero_;
  const ParameterTable& table_;
  ModelSpec model_;
  std::int64_t rows_;
  std::int64_t batch_;
  double loss_scale_;
  BufferId loss_;
  std::int64_t micro_step_ = 0;
  BufferId tokens_ = -1;
  BufferId targets_ = -1;
};

}  // namespace krigtune
