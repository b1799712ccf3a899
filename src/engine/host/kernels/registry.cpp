// The one table from operation to kernel: a new kernel is one file and one line here.
#include <array>
#include <stdexcept>
#include <string>

#include "host/kernels/kernel.h"

namespace krigtune {
namespace {

template <class T>
struct Entry {
  OpKind kind;
  Kernel<T> kernel;  ///< null: a collective, which the communicator executes
  std::size_t least_operands;
  std::int64_t (*scratch_elems)(const Shape&) = nullptr;  ///< null: none
};

template <class T>
constexpr std::array kTable = std::to_array<Entry<T>>({
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
    {OpKind::kLinearForward, linear_forward<T>, 3},
    {OpKind::kLinearBackwardInput, linear_backward_input<T>, 3},
    {OpKind::kLinearBackwardWeight, linear_backward_weight<T>, 3},
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

template <class T>
const Entry<T>& entry(OpKind kind) {
  for (const Entry<T>& candidate : kTable<T>) {
    if (candidate.kind == kind) return candidate;
  }
  throw std::logic_error("no kernel is registered for operation kind " + std::to_string(static_cast<int>(kind)));
}

}  // namespace

template <class T>
Kernel<T> kernel_for(OpKind kind) {
  const Kernel<T> kernel = entry<T>(kind).kernel;
  if (kernel == nullptr) throw std::logic_error("a collective has no kernel");
  return kernel;
}

std::size_t least_operands(OpKind kind) { return entry<float>(kind).least_operands; }

std::int64_t scratch_elems(OpKind kind, const Shape& shape) {
  const auto elems = entry<float>(kind).scratch_elems;
  return elems == nullptr ? 0 : elems(shape);
}

template Kernel<float> kernel_for<float>(OpKind);
template Kernel<double> kernel_for<double>(OpKind);

}  // namespace krigtune
