#include "krigtune/schedule/op_kind.h"

#include <array>

namespace krigtune {
namespace {

// In the order of the enumerators.
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
static_assert(kOpKindCount == static_cast<int>(OpKind::kAllGather) + 1);

}  // namespace

const char* to_string(OpKind kind) { return kOpKindNames[static_cast<std::size_t>(kind)]; }

bool is_collective(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllReduceMax || kind == OpKind::kReduceScatter ||
         kind == OpKind::kAllGather;
}

bool is_product(OpKind kind) {
  return kind == OpKind::kLinearForward || kind == OpKind::kLinearBackwardInput ||
         kind == OpKind::kLinearBackwardWeight || kind == OpKind::kAttentionForward ||
         kind == OpKind::kAttentionBackward;
}

double flops_per_elem(OpKind kind) {
  switch (kind) {
    case OpKind::kLayerNormForward:
      return 7.0;
    case OpKind::kLayerNormBackward:
      return 14.0;
    case OpKind::kRmsNormForward:
      return 4.0;
    case OpKind::kRmsNormBackward:
      return 11.0;
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return 3.0;
    case OpKind::kGeluForward:
      return 9.0;
    case OpKind::kGeluBackward:
      return 16.0;
    case OpKind::kSwigluForward:
      return 3.0;  // an element of gate_up: 6 an output
    case OpKind::kSwigluBackward:
      return 7.0;
    case OpKind::kCrossEntropy:
      return 5.0;
    case OpKind::kVocabSumExp:
      return 3.0;
    case OpKind::kGradientNorm:
      return 2.0;
    case OpKind::kAdamW:
      return 14.0;
    case OpKind::kSgd:
      return 5.0;
    default:
      return 1.0;
  }
}

}  // namespace krigtune
