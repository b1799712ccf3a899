#pragma once
#include <string>
#include <vector>

#include "plan/plan_builder.h"
#include "plan/zero_operations.h"
#include "schedule/knobs.h"
#include "schedule/parameters.h"

namespace krigtune::plan {

/// Of one rank in one micro-step.
struct StepSizes {
  std::int64_t batch = 0, seq = 0;
  std::int64_t rows = 0;      ///< tokens
  std::int64_t own_rows = 0;  ///< tokens of norms, dropouts and residuals: a part of them under sequence parallelism
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t attention = 0;  ///< width of the query heads, and of attention's output
  std::int64_t qkv = 0;
  std::int64_t ffn = 0;
  std::int64_t up = 0;     ///< ffn, or gate and up
  std::int64_t vocab = 0;  ///< rows of the table
};

/// Adds the operations that all parts of a model are made of, and knows where tensor parallelism cuts them and which
/// collectives the cuts need. "Own" tokens: see StepSizes.
class StepOperations {
 public:
  StepOperations(PlanBuilder& builder, ZeroOperations& zero, const workload::Workload& workload,
                 const schedule::Knobs& knobs);

  const StepSizes& sizes() const { return sizes_; }
  const workload::ModelSpec& model() const { return model_; }
  const schedule::Knobs& knobs() const { return knobs_; }
  ZeroOperations& zero() { return zero_; }
  schedule::DType type() const { return type_; }  ///< of activations
  std::int64_t micro_step() const { return micro_step_; }

  void begin_micro_step(std::int64_t micro_step) { micro_step_ = micro_step; }
  /// Where the following operations belong.
  void at(schedule::Phase phase, std::int64_t layer = -1);
  /// Likewise, in the layer that it is at.
  void in(schedule::Phase phase) { at(phase, layer_); }

  BufferId own(std::string name, schedule::Term term, std::int64_t width);
  BufferId all(std::string name, schedule::Term term, std::int64_t width);
  BufferId buffer(std::string name, schedule::Term term, std::int64_t elems, schedule::DType type);
  Operand own_reads(BufferId buffer) const { return reads(buffer, sizes_.own_rows * sizes_.hidden); }
  Operand own_updates(BufferId buffer) const { return updates(buffer, sizes_.own_rows * sizes_.hidden); }

  void add(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands, double scale = 1.0);
  /// Likewise where an operand may be one tensor rank's part of a buffer.
  void add_on_own(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands);
  /// kAllReduce or kAllReduceMax over the tensor group, without effect on one rank.
  void all_reduce(schedule::OpKind kind, std::vector<Operand> wholes);
  /// Own tokens become all tokens, `x` itself where they are the same.
  BufferId gathered(BufferId x);
  /// Partial sums for all tokens become sums for the own tokens: where those are.
  Operand reduced(BufferId x);

  BufferId norm_stats(std::string name, schedule::Term term);
  void norm_forward(BufferId x, const schedule::NormTensors& norm, BufferId y, BufferId stats);
  void norm_backward(const Operand& dy, BufferId x, const schedule::NormTensors& norm, BufferId stats,
                     const Operand& dx);

  /// y (all tokens, outer) = x (own tokens, hidden). Returns x for all tokens.
  BufferId column_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t outer);
  /// Returns the gradient of x, of the own tokens.
  Operand column_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, std::int64_t outer,
                          const char* name);
  /// y (own tokens, hidden) = x (all tokens, inner), with its bias.
  void row_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner);
  void row_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, BufferId dx, std::int64_t inner);
  /// Of a linear layer without its cut; its bias may be kNoTensor.
  void linear_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner,
                      std::int64_t outer);
  void linear_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, BufferId dx, std::int64_t inner,
                       std::int64_t outer);

  bool drops() const { return model_.dropout > 0.0; }
  /// y in place, on the own tokens. Returns the mask, -1 without dropout.
  BufferId dropout_forward(BufferId y, std::int32_t site, schedule::Term term);
  /// The gradient of what was added to the residual stream; `residual_gradient` itself without dropout.
  BufferId branch_gradient(BufferId residual_gradient, BufferId mask, std::int32_t site);

 private:
  Shape own_shape() const { return {.rows = sizes_.own_rows, .inner = sizes_.hidden}; }
  Shape dropout_shape(std::int32_t site) const;
  bool layer_norm() const { return model_.norm == workload::Norm::kLayerNorm; }
  Operand stats_operand(BufferId stats, Access access) const;

  PlanBuilder& builder_;
  ZeroOperations& zero_;
  workload::ModelSpec model_;
  schedule::Knobs knobs_;
  schedule::DType type_;
  StepSizes sizes_;
  std::int64_t micro_step_ = 0;
  std::int64_t layer_ = -1;
};

/// The dropouts of a layer.
inline constexpr std::int32_t kProbabilitiesSite = 0;
inline constexpr std::int32_t kAttentionSite = 1;
inline constexpr std::int32_t kMlpSite = 2;
inline constexpr std::int32_t kEmbeddingSite = 3;

}  // namespace krigtune::plan
