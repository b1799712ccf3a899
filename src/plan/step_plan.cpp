#include "krigtune/plan/step_plan.h"

#include <array>
#include <cassert>

namespace krigtune {
namespace {

// In the order of the enumerators.
constexpr std::array<const char*, kTermCount> kTermNames = {
    "parameters", "gradients", "optimizer_state", "gathered_parameters", "reduce_buckets", "activations",
    "logits",     "workspace", "inputs"};
constexpr std::array<const char*, kOpKindCount> kOpKindNames = {"load_batch",
                                                                "zero",
                                                                "copy",
                                                                "accumulate",
                                                                "embedding_forward",
                                                                "embedding_backward",
                                                                "positions_forward",
                                                                "positions_backward",
                                                                "layer_norm_forward",
                                                                "layer_norm_backward",
                                                                "rms_norm_forward",
                                                                "rms_norm_backward",
                                                                "linear_forward",
                                                                "linear_backward_input",
                                                                "linear_backward_weight",
                                                                "add_bias",
                                                                "bias_backward",
                                                                "rotary_forward",
                                                                "rotary_backward",
                                                                "attention_forward",
                                                                "attention_backward",
                                                                "gelu_forward",
                                                                "gelu_backward",
                                                                "swiglu_forward",
                                                                "swiglu_backward",
                                                                "dropout_forward",
                                                                "dropout_backward",
                                                                "add",
                                                                "cross_entropy",
                                                                "vocab_max",
                                                                "vocab_sum_exp",
                                                                "vocab_cross_entropy",
                                                                "gradient_norm",
                                                                "loss_scale",
                                                                "adamw",
                                                                "sgd",
                                                                "all_reduce",
                                                                "all_reduce_max",
                                                                "reduce_scatter",
                                                                "all_gather"};
constexpr std::array<const char*, kPhaseCount> kPhaseNames = {"forward", "recompute", "backward", "optimizer"};

static_assert(kTermCount == static_cast<int>(Term::kInputs) + 1);
static_assert(kOpKindCount == static_cast<int>(OpKind::kAllGather) + 1);
static_assert(kPhaseCount == static_cast<int>(Phase::kOptimizer) + 1);

}  // namespace

std::int64_t size_bytes(DType type) {
  static_assert(sizeof(float) == 4 && sizeof(std::int32_t) == 4);
  switch (type) {
    case DType::kFp32:
    case DType::kInt32:
      return 4;
    case DType::kBf16:
    case DType::kFp16:
      return 2;
    case DType::kUint8:
      return 1;
  }
  assert(false);
  return 0;
}

const char* to_string(Term term) { return kTermNames[static_cast<std::size_t>(term)]; }
const char* to_string(OpKind kind) { return kOpKindNames[static_cast<std::size_t>(kind)]; }
const char* to_string(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

bool is_collective(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllReduceMax || kind == OpKind::kReduceScatter ||
         kind == OpKind::kAllGather;
}

bool is_product(OpKind kind) {
  return kind == OpKind::kLinearForward || kind == OpKind::kLinearBackwardInput ||
         kind == OpKind::kLinearBackwardWeight || kind == OpKind::kAttentionForward ||
         kind == OpKind::kAttentionBackward;
}

double hardware_flops(const StepPlan& plan) {
  double flops = 0.0;
  for (const Operation& operation : plan.operations) {
    if (is_product(operation.kind)) flops += operation.flops;
  }
  return flops;
}

std::int64_t whole_element(const ParameterTensor& tensor, std::int64_t tensor_rank, std::int64_t tensor_ranks,
                           std::int64_t elem) {
  if (tensor.split == Split::kNone) return elem;
  if (tensor.split == Split::kColumns) {
    const std::int64_t width = tensor.row_elems / tensor_ranks;
    return elem / width * tensor.row_elems + tensor_rank * width + elem % width;
  }
  std::int64_t local_row = elem / tensor.row_elems;
  std::int64_t whole_row = 0;
  for (const std::int64_t rows : tensor.block_rows) {
    const std::int64_t share = (rows + tensor_ranks - 1) / tensor_ranks;
    if (local_row < share) {
      const std::int64_t row = tensor_rank * share + local_row;
      return row < rows ? (whole_row + row) * tensor.row_elems + elem % tensor.row_elems : -1;
    }
    local_row -= share;
    whole_row += rows;
  }
  return -1;
}

}  // namespace krigtune
