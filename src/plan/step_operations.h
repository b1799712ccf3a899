#pragma once
#include <map>
#include <string>
#include <vector>

#include "plan/plan_builder.h"
#include "plan/recomputation.h"
#include "plan/zero_operations.h"
#include "schedule/knobs.h"
#include "schedule/parameters.h"

namespace krigtune::plan {

/// Sizes for one rank in one micro-step.
struct StepSizes {
  std::int64_t batch = 0, seq = 0;
  std::int64_t rows = 0;  ///< tokens
  /// Tokens of norms, dropouts and residuals: only a part of all tokens under sequence parallelism.
  std::int64_t own_rows = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t queries = 0;    ///< width of the query heads
  std::int64_t attention = 0;  ///< width of attention's output
  std::int64_t qkv = 0;
  std::int64_t experts = 0;
  std::int64_t expert_rows = 0;                ///< tokens that this rank sends to experts
  std::int64_t routed = 0;                     ///< tokens of all experts together: each token counts per_token times
  std::int64_t expert_ffn = 0, expert_up = 0;  ///< of one expert
  std::int64_t expert_hidden = 0;              ///< width of what the experts work on
  std::int64_t vocab = 0;                      ///< rows of the token table
};

/// What a norm keeps for its backward pass beside its output.
struct KeptByNorm {
  BufferId stats = -1;
  BufferId input = -1;       ///< its input in fp32, which eager kernels keep instead of the input itself
  BufferId normalised = -1;  ///< its output before the gain, for eager kernels
};

/// Adds the operations from which all parts of a model are built. It knows where tensor parallelism splits them and
/// which collectives this requires. "Own" tokens: see StepSizes.
class StepOperations {
 public:
  StepOperations(PlanBuilder& builder, ZeroOperations& zero, const workload::Workload& workload,
                 const schedule::Knobs& knobs);

  const StepSizes& sizes() const { return sizes_; }
  const workload::ModelSpec& model() const { return model_; }
  const schedule::Knobs& knobs() const { return knobs_; }
  ZeroOperations& zero() { return zero_; }
  schedule::DType type() const { return type_; }  ///< type of the activations
  /// The type of what only the blocks' linear layers read: narrower if their products are.
  schedule::DType input_type() const { return input_type_; }
  std::int64_t micro_step() const { return micro_step_; }
  /// The routing weights multiply the experts' outputs, which are kept for the weights' gradient. Megatron Core (since
  /// 0.12, transformer/moe/experts.py) multiplies their activations instead.
  bool keeps_expert_outputs() const { return keeps_expert_outputs_; }
  bool has_eager_kernels() const { return eager_kernels_; }
  /// Each tensor rank sends its own tokens to whole experts.
  bool has_whole_experts() const { return knobs_.whole_experts; }
  /// Parts in which head and loss are computed; 1 if all logits exist at once.
  std::int64_t loss_parts() const { return loss_parts_; }
  /// The values of latent attention remain in the tensor of the product that makes them and the keys without positions
  /// (transformers 5.24, measured: experiments/models). Megatron Core copies them (multi_latent_attention.py).
  bool keeps_keys_beside_values() const { return keeps_keys_beside_values_; }

  void begin_micro_step(std::int64_t micro_step) { micro_step_ = micro_step; }
  /// Sets where the following operations belong.
  void at(schedule::Phase phase, std::int64_t layer = -1);
  /// Sets the phase and keeps the layer.
  void in(schedule::Phase phase) { at(phase, layer_); }
  /// The operations of the forward pass that belong to a module, which may be computed again: those that are added
  /// while this object exists. `part` tells several of a kind in a layer apart; without `applies` it does nothing.
  class InModule {
   public:
    InModule(StepOperations& to, schedule::Module module, bool applies = true, int part = 0)
        : recomputation_(applies ? &to.recomputation_ : nullptr) {
      if (recomputation_ != nullptr) recomputation_->open(module, part);
    }
    ~InModule() {
      if (recomputation_ != nullptr) recomputation_->close();
    }
    InModule(const InModule&) = delete;
    InModule& operator=(const InModule&) = delete;

   private:
    Recomputation* recomputation_;
  };

  BufferId own(std::string name, schedule::Term term, std::int64_t width);
  BufferId all(std::string name, schedule::Term term, std::int64_t width);
  BufferId buffer(std::string name, schedule::Term term, std::int64_t elems, schedule::DType type);
  /// The same for what only linear layers read.
  BufferId own_input(std::string name, schedule::Term term, std::int64_t width);
  BufferId all_input(std::string name, schedule::Term term, std::int64_t width);
  Operand own_reads(BufferId buffer) const { return reads(buffer, sizes_.own_rows * sizes_.hidden); }
  Operand own_updates(BufferId buffer) const { return updates(buffer, sizes_.own_rows * sizes_.hidden); }

  void add(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands, double scale = 1.0);
  /// Does the same if an operand may be one tensor rank's part of a buffer.
  void add_on_own(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands);
  /// Adds kAllReduce or kAllReduceMax over the tensor group; does nothing with one rank.
  void all_reduce(schedule::OpKind kind, std::vector<Operand> wholes);
  /// Gathers own tokens to all tokens; returns `x` itself if they are the same.
  BufferId gathered(BufferId x) { return gathered(x, "gathered tokens", sizes_.hidden, builder_.type_of(x)); }
  /// The same for rows of another width and type.
  BufferId gathered(BufferId x, const char* name, std::int64_t width, schedule::DType type);
  /// Makes y (own tokens, hidden) of the columns that each tensor rank has for all tokens.
  void gather_columns(BufferId part, BufferId y);
  /// The backward of gather_columns: of y (own tokens, hidden) returns this rank's columns for all tokens.
  BufferId own_columns(BufferId y);
  /// Reduces partial sums for all tokens to sums for the own tokens, and returns where those are.
  Operand reduced(BufferId x) { return reduced(x, sizes_.hidden); }
  Operand reduced(BufferId x, std::int64_t width);

  /// The statistics of a norm, without what eager kernels keep, which norm_forward adds.
  KeptByNorm norm_stats(std::string name, schedule::Term term);
  /// `term` is that of what eager kernels keep.
  void norm_forward(BufferId x, const schedule::NormTensors& norm, BufferId y, KeptByNorm& kept, schedule::Term term);
  void norm_backward(const Operand& dy, BufferId x, const schedule::NormTensors& norm, const KeptByNorm& kept,
                     const Operand& dx);

  /// Uses a tensor of other parameters, and makes its gradient; nothing if there is none. It costs next to no time.
  void others_forward(int tensor);
  void others_backward(int tensor);

  /// y (all tokens, outer) = x (own tokens, hidden). Returns x for all tokens.
  BufferId column_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t outer);
  /// Returns whether the backward pass of a layer reads its input: for the gradient of its weight, or of adapters that
  /// have no copy of their own.
  bool reads_input_again(const schedule::LinearTensors& linear) const {
    return zero_.trains(linear.weight) || (!linear.adapters.empty() && !copies_adapter_inputs_);
  }
  /// Returns the gradient of x for the own tokens.
  Operand column_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, std::int64_t outer,
                          const char* name);
  /// y (own tokens, hidden) = x (all tokens, inner), including the bias.
  void row_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner);
  void row_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, BufferId dx, std::int64_t inner);
  /// The two halves of row_forward with several products: where each adds or writes this rank's sums for all tokens,
  /// and what makes y (own tokens) of them.
  BufferId sums_for(BufferId y);
  void reduce_sums(BufferId sums, BufferId y);
  /// The bias of a row-parallel product, which is added once, to the sums: by the product itself on one tensor rank.
  schedule::LinearTensors row_product(const schedule::LinearTensors& linear) const;
  void add_row_bias(const schedule::LinearTensors& linear, BufferId y);
  void row_bias_backward(const schedule::LinearTensors& linear, BufferId dy);
  /// A linear layer that is not split; its bias may be kNoTensor.
  void linear_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner,
                      std::int64_t outer);
  void linear_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, BufferId dx, std::int64_t inner,
                       std::int64_t outer);

  /// The same for the own tokens, by a matrix that is whole on every tensor rank and has no adapters. dx is written or
  /// added to.
  void own_linear_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner,
                          std::int64_t outer);
  void own_linear_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, const Operand& dx,
                           std::int64_t inner, std::int64_t outer);
  /// A product of a linear layer without its adapters, of any number of rows: y = x W, and the gradients of weight and
  /// bias.
  void product_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, const Shape& shape);
  void product_backward_weight(BufferId dy, BufferId x, const schedule::LinearTensors& linear, const Shape& shape);

  /// Returns the width of what an MLP of a block activates: its columns, or gate and up together.
  std::int64_t up_columns(const schedule::BlockTensors& block) const {
    return (model_.gated_mlp ? 2 : 1) * block.mlp_columns;
  }
  /// The MLP's activation: activated (rows, width) of up (rows, width, or twice that with a gate). Returns the
  /// activated gate, of that term, if it is kept (eager kernels), or -1.
  BufferId activate(BufferId up, BufferId activated, std::int64_t rows, std::int64_t width, schedule::Term term);
  /// Returns the gradient of `up`: GELU's overwrites that of its output; SwiGLU's is wider, so it is in a buffer of
  /// that name.
  BufferId activation_backward(BufferId up, BufferId gate, BufferId dactivated, std::int64_t rows, std::int64_t width,
                               const char* name);

  bool drops() const { return model_.dropout > 0.0; }
  /// Applies dropout to y in place, on the own tokens. Returns the mask, or -1 without dropout.
  BufferId dropout_forward(BufferId y, std::int32_t site, schedule::Term term);
  /// Returns the gradient of what was added to the residual stream; without dropout this is `residual_gradient` itself.
  BufferId branch_gradient(BufferId residual_gradient, BufferId mask, std::int32_t site);

 private:
  Shape own_shape() const { return {.rows = sizes_.own_rows, .inner = sizes_.hidden}; }
  Shape dropout_shape(std::int32_t site) const;
  /// Of a norm. With eager kernels a layer norm without a bias is planned as an RMS norm.
  bool subtracts_mean() const {
    return model_.norm == workload::Norm::kLayerNorm && (model_.has_norm_bias() || !eager_kernels_);
  }
  std::int64_t stats_elems() const { return (subtracts_mean() ? 2 : 1) * sizes_.own_rows; }
  Operand stats_operand(BufferId stats, Access access) const;
  bool keeps_normalised(const schedule::NormTensors& norm) const;

  /// What an adapter keeps for backward; without a copy of its own, its input is that of its layer.
  struct AdapterBuffers {
    BufferId input = -1, mask = -1;
    BufferId hidden = -1;  ///< A x
  };
  Operand weight_of(const schedule::LinearTensors& linear, std::int64_t elems);
  /// Where an adapter of a layer with outputs y (all tokens, outer) adds, or reads its gradient.
  struct AdaptedOutput {
    Shape shape;  ///< of the product with B
    Operand y;
  };
  void adapter_forward(const schedule::AdapterTensors& adapter, BufferId x, BufferId y, std::int64_t inner,
                       std::int64_t outer);
  void adapter_backward(const schedule::AdapterTensors& adapter, BufferId dy, BufferId x, BufferId dx,
                        std::int64_t inner, std::int64_t outer);
  AdaptedOutput adapted(BufferId y, const schedule::AdapterTensors& adapter, std::int64_t outer, Access access) const;
  Shape adapter_dropout_shape(const schedule::AdapterTensors& adapter, std::int64_t inner) const;

  PlanBuilder& builder_;
  Recomputation recomputation_;
  ZeroOperations& zero_;
  workload::ModelSpec model_;
  schedule::Knobs knobs_;
  double adapter_dropout_;
  bool copies_adapter_inputs_;
  bool adds_adapters_at_once_;  ///< to the layer's output: krigtune-bench; frameworks make a tensor of its own first
  bool eager_kernels_;
  schedule::DType type_;
  schedule::DType input_type_;
  StepSizes sizes_;
  bool keeps_expert_outputs_;
  std::int64_t loss_parts_;
  bool keeps_keys_beside_values_;
  std::int64_t micro_step_ = 0;
  std::int64_t layer_ = -1;
  std::map<int, AdapterBuffers> adapters_;  ///< by the adapter's tensor A
};

/// The dropout sites of a layer.
inline constexpr std::int32_t kProbabilitiesSite = 0;
inline constexpr std::int32_t kAttentionSite = 1;
inline constexpr std::int32_t kMlpSite = 2;
inline constexpr std::int32_t kEmbeddingSite = 3;
inline constexpr std::int32_t kFirstAdapterSite = 4;  ///< one for each workload::AdaptedLayer

}  // namespace krigtune::plan
