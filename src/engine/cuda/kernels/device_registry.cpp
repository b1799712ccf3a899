// The one table from operation to device kernel: a new kernel is one file and one line here.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "cuda/kernels/device_kernel.h"
#include "cuda/kernels/flash_attention.h"

namespace krigtune::cuda {
namespace {

struct Entry {
  OpKind kind;
  DeviceKernel kernel;
};

constexpr std::array kTable = std::to_array<Entry>({
    {OpKind::kLoadBatch, load_batch},
    {OpKind::kZero, zero},
    {OpKind::kCopy, copy},
    {OpKind::kAccumulate, accumulate},
    {OpKind::kEmbeddingForward, embedding_forward},
    {OpKind::kEmbeddingBackward, embedding_backward},
    {OpKind::kPositionsForward, positions_forward},
    {OpKind::kPositionsBackward, positions_backward},
    {OpKind::kLayerNormForward, layer_norm_forward},
    {OpKind::kLayerNormBackward, layer_norm_backward},
    {OpKind::kRmsNormForward, rms_norm_forward},
    {OpKind::kRmsNormBackward, rms_norm_backward},
    {OpKind::kLinearForward, linear_forward},
    {OpKind::kLinearBackwardInput, linear_backward_input},
    {OpKind::kLinearBackwardWeight, linear_backward_weight},
    {OpKind::kAddBias, add_bias},
    {OpKind::kBiasBackward, bias_backward},
    {OpKind::kRotaryForward, rotary_forward},
    {OpKind::kRotaryBackward, rotary_backward},
    {OpKind::kAttentionForward, attention_forward},
    {OpKind::kAttentionBackward, attention_backward},
    {OpKind::kGeluForward, gelu_forward},
    {OpKind::kGeluBackward, gelu_backward},
    {OpKind::kSwigluForward, swiglu_forward},
    {OpKind::kSwigluBackward, swiglu_backward},
    {OpKind::kDropoutForward, dropout_forward},
    {OpKind::kDropoutBackward, dropout_backward},
    {OpKind::kAdd, add},
    {OpKind::kCrossEntropy, cross_entropy},
    {OpKind::kVocabMax, vocab_max},
    {OpKind::kVocabSumExp, vocab_sum_exp},
    {OpKind::kVocabCrossEntropy, vocab_cross_entropy},
    {OpKind::kGradientNorm, gradient_norm},
    {OpKind::kLossScale, loss_scale},
    {OpKind::kAdamW, adamw},
    {OpKind::kSgd, sgd},
});

}  // namespace

DeviceKernel device_kernel_for(OpKind kind) {
  if (is_collective(kind)) return nullptr;
  for (const Entry& entry : kTable) {
    if (entry.kind == kind) return entry.kernel;
  }
  throw std::logic_error(std::string("no device kernel is registered for ") + to_string(kind));
}

std::int64_t scratch_bytes(const Operation& operation) {
  const std::int64_t least = kScratchFloats * size_bytes(DType::kFp32);
  if (operation.kind != OpKind::kAttentionBackward) return least;
  return std::max(least, flash_attention_scratch_bytes(operation.shape));
}

}  // namespace krigtune::cuda
