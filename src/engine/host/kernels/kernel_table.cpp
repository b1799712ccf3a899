// The one table from operation to kernel: a new kernel is one file and one line here.
#include <array>

#include "host/kernels/kernel_functions.h"
#include "host/kernels/kernel_unit.h"

#define KRIGTUNE_TEXT_OF(token) #token
#define KRIGTUNE_TEXT(macro) KRIGTUNE_TEXT_OF(macro)

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

template <class T>
constexpr std::array kTable = std::to_array<KernelEntry<T>>({
    {OpKind::kLoadBatch, load_batch<T>, 2},
    {OpKind::kZero, zero<T>, 1},
    {OpKind::kCopy, accumulate<T>, 2},
    {OpKind::kAccumulate, accumulate<T>, 2},
    {OpKind::kEmbeddingForward, embedding_forward<T>, 3},
    {OpKind::kEmbeddingBackward, embedding_backward<T>, 3},
    {OpKind::kPositionsForward, positions_forward<T>, 2},
    {OpKind::kPositionsBackward, positions_backward<T>, 2},
    {OpKind::kLayerNormForward, layer_norm_forward<T>, 5},
    {OpKind::kLayerNormBackward, layer_norm_backward<T>, 7},
    {OpKind::kRmsNormForward, rms_norm_forward<T>, 4},
    {OpKind::kRmsNormBackward, rms_norm_backward<T>, 6},
    {OpKind::kLinearForward, linear_forward<T>, 3, linear_scratch},
    {OpKind::kLinearBackwardInput, linear_backward_input<T>, 3, linear_scratch},
    {OpKind::kLinearBackwardWeight, linear_backward_weight<T>, 3, linear_scratch},
    {OpKind::kAddBias, add_bias<T>, 2},
    {OpKind::kBiasBackward, bias_backward<T>, 2},
    {OpKind::kRotaryForward, rotary_forward<T>, 1, rotary_scratch},
    {OpKind::kRotaryBackward, rotary_backward<T>, 1, rotary_scratch},
    {OpKind::kAttentionForward, attention_forward<T>, 3, attention_scratch},
    {OpKind::kAttentionBackward, attention_backward<T>, 5, attention_scratch},
    {OpKind::kGeluForward, gelu_forward<T>, 2},
    {OpKind::kGeluBackward, gelu_backward<T>, 2},
    {OpKind::kSwigluForward, swiglu_forward<T>, 2},
    {OpKind::kSwigluBackward, swiglu_backward<T>, 3},
    {OpKind::kDropoutForward, dropout_forward<T>, 2},
    {OpKind::kDropoutBackward, dropout_backward<T>, 2},
    {OpKind::kAdd, add<T>, 2},
    {OpKind::kCrossEntropy, cross_entropy<T>, 3},
    {OpKind::kVocabMax, vocab_max<T>, 2},
    {OpKind::kVocabSumExp, vocab_sum_exp<T>, 5},
    {OpKind::kVocabCrossEntropy, vocab_cross_entropy<T>, 5},
    {OpKind::kGradientNorm, gradient_norm<T>, 2},
    {OpKind::kLossScale, update_loss_scale<T>, 2},
    {OpKind::kAdamW, adamw<T>, 4},
    {OpKind::kSgd, sgd<T>, 3},
    {OpKind::kAllReduce, nullptr, 1},
    {OpKind::kAllReduceMax, nullptr, 1},
    {OpKind::kReduceScatter, nullptr, 1},
    {OpKind::kAllGather, nullptr, 2},
});

}  // namespace

extern const KernelUnit kUnit;
constexpr KernelUnit kUnit{
    .name = KRIGTUNE_TEXT(KRIGTUNE_KERNELS),
    .floats = kTable<float>,
    .doubles = kTable<double>,
    .multiply_floats = multiply<float>,
    .multiply_doubles = multiply<double>,
};

}  // namespace krigtune::KRIGTUNE_KERNELS
