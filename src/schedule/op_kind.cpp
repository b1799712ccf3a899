#include "krigtune/schedule/op_kind.h"

#include <algorithm>
#include <array>

namespace krigtune {
namespace {

struct OpTraits {
  OpKind kind{};
  const char* name;
  OpFamily family{};
  double flops_per_elem;
};

constexpr std::array<OpTraits, kOpKindCount> kTraits{{
    {OpKind::kLoadBatch, "load_batch", OpFamily::kElements, 1.0},
    {OpKind::kZero, "zero", OpFamily::kElements, 1.0},
    {OpKind::kCopy, "copy", OpFamily::kElements, 1.0},
    {OpKind::kAccumulate, "accumulate", OpFamily::kElements, 1.0},
    {OpKind::kEmbeddingForward, "embedding_forward", OpFamily::kElements, 1.0},
    {OpKind::kEmbeddingBackward, "embedding_backward", OpFamily::kElements, 1.0},
    {OpKind::kPositionsForward, "positions_forward", OpFamily::kElements, 1.0},
    {OpKind::kPositionsBackward, "positions_backward", OpFamily::kElements, 1.0},
    {OpKind::kLayerNormForward, "layer_norm_forward", OpFamily::kElements, 7.0},
    {OpKind::kLayerNormBackward, "layer_norm_backward", OpFamily::kElements, 14.0},
    {OpKind::kRmsNormForward, "rms_norm_forward", OpFamily::kElements, 4.0},
    {OpKind::kRmsNormBackward, "rms_norm_backward", OpFamily::kElements, 11.0},
    {OpKind::kLinearForward, "linear_forward", OpFamily::kProduct, 1.0},
    {OpKind::kLinearBackwardInput, "linear_backward_input", OpFamily::kProduct, 1.0},
    {OpKind::kLinearBackwardWeight, "linear_backward_weight", OpFamily::kProduct, 1.0},
    {OpKind::kAddBias, "add_bias", OpFamily::kElements, 1.0},
    {OpKind::kBiasBackward, "bias_backward", OpFamily::kElements, 1.0},
    {OpKind::kRotaryForward, "rotary_forward", OpFamily::kElements, 3.0},
    {OpKind::kRotaryBackward, "rotary_backward", OpFamily::kElements, 3.0},
    {OpKind::kAttentionForward, "attention_forward", OpFamily::kAttention, 1.0},
    {OpKind::kAttentionBackward, "attention_backward", OpFamily::kAttention, 1.0},
    {OpKind::kGeluForward, "gelu_forward", OpFamily::kElements, 9.0},
    {OpKind::kGeluBackward, "gelu_backward", OpFamily::kElements, 16.0},
    {OpKind::kSwigluForward, "swiglu_forward", OpFamily::kElements, 3.0},  // an element of gate_up: 6 an output
    {OpKind::kSwigluBackward, "swiglu_backward", OpFamily::kElements, 7.0},
    {OpKind::kDropoutForward, "dropout_forward", OpFamily::kElements, 1.0},
    {OpKind::kDropoutBackward, "dropout_backward", OpFamily::kElements, 1.0},
    {OpKind::kAdd, "add", OpFamily::kElements, 1.0},
    {OpKind::kCrossEntropy, "cross_entropy", OpFamily::kElements, 5.0},
    {OpKind::kVocabMax, "vocab_max", OpFamily::kElements, 1.0},
    {OpKind::kVocabSumExp, "vocab_sum_exp", OpFamily::kElements, 3.0},
    {OpKind::kVocabCrossEntropy, "vocab_cross_entropy", OpFamily::kElements, 1.0},
    {OpKind::kGradientNorm, "gradient_norm", OpFamily::kElements, 2.0},
    {OpKind::kLossScale, "loss_scale", OpFamily::kElements, 1.0},
    {OpKind::kAdamW, "adamw", OpFamily::kElements, 14.0},
    {OpKind::kSgd, "sgd", OpFamily::kElements, 5.0},
    {OpKind::kAllReduce, "all_reduce", OpFamily::kCollective, 1.0},
    {OpKind::kAllReduceMax, "all_reduce_max", OpFamily::kCollective, 1.0},
    {OpKind::kReduceScatter, "reduce_scatter", OpFamily::kCollective, 1.0},
    {OpKind::kAllGather, "all_gather", OpFamily::kCollective, 1.0},
}};
static_assert(kOpKindCount == static_cast<int>(OpKind::kAllGather) + 1);
static_assert(std::adjacent_find(kTraits.begin(), kTraits.end(), [](const OpTraits& a, const OpTraits& b) {
                return a.kind >= b.kind;
              }) == kTraits.end());

constexpr const OpTraits& traits_of(OpKind kind) { return kTraits[static_cast<std::size_t>(kind)]; }

}  // namespace

const char* to_string(OpKind kind) { return traits_of(kind).name; }
OpFamily family_of(OpKind kind) { return traits_of(kind).family; }
double flops_per_elem(OpKind kind) { return traits_of(kind).flops_per_elem; }

}  // namespace krigtune
