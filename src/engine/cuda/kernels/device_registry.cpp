// The only table from operations to device kernels. A new kernel needs one .cu file, its name in the list of functions
// and its line in the table.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

// The functions that the .cu files of this folder define, one family in each file.
using Function = void(const DeviceCall&);
Function load_batch, zero, copy, accumulate, embedding_forward, embedding_backward, positions_forward,
    positions_backward, layer_norm_forward, layer_norm_backward, rms_norm_forward, rms_norm_backward, qk_norm_forward,
    qk_norm_backward, linear_forward, linear_backward_input, linear_backward_weight, add_bias, bias_backward,
    rotary_forward, rotary_backward, attention_forward, attention_backward, gelu_forward, gelu_backward, swiglu_forward,
    swiglu_backward, dropout_forward, dropout_backward, add, cross_entropy, vocab_max, vocab_sum_exp,
    vocab_cross_entropy, gradient_norm, loss_scale, adamw, sgd;

// Functions that return the floats of scratch memory of kernels that need some.
using Scratch = std::int64_t(const plan::Operation&);
Scratch embedding_backward_scratch, norm_backward_scratch, qk_norm_backward_scratch, linear_backward_weight_scratch,
    bias_backward_scratch, rotary_scratch, attention_backward_scratch, cross_entropy_scratch, gradient_norm_scratch,
    optimizer_scratch;

namespace {

struct Entry {
  schedule::OpKind kind;
  Function* kernel;
  Scratch* scratch = nullptr;  ///< null: the kernel needs none
};

constexpr std::array kTable = std::to_array<Entry>({
    {schedule::OpKind::kLoadBatch, load_batch},
    {schedule::OpKind::kZero, zero},
    {schedule::OpKind::kCopy, copy},
    {schedule::OpKind::kAccumulate, accumulate},
    {schedule::OpKind::kEmbeddingForward, embedding_forward},
    {schedule::OpKind::kEmbeddingBackward, embedding_backward, embedding_backward_scratch},
    {schedule::OpKind::kPositionsForward, positions_forward},
    {schedule::OpKind::kPositionsBackward, positions_backward},
    {schedule::OpKind::kLayerNormForward, layer_norm_forward},
    {schedule::OpKind::kLayerNormBackward, layer_norm_backward, norm_backward_scratch},
    {schedule::OpKind::kRmsNormForward, rms_norm_forward},
    {schedule::OpKind::kRmsNormBackward, rms_norm_backward, norm_backward_scratch},
    {schedule::OpKind::kQkNormForward, qk_norm_forward},
    {schedule::OpKind::kQkNormBackward, qk_norm_backward, qk_norm_backward_scratch},
    {schedule::OpKind::kLinearForward, linear_forward},
    {schedule::OpKind::kLinearBackwardInput, linear_backward_input},
    {schedule::OpKind::kLinearBackwardWeight, linear_backward_weight, linear_backward_weight_scratch},
    {schedule::OpKind::kAddBias, add_bias},
    {schedule::OpKind::kBiasBackward, bias_backward, bias_backward_scratch},
    {schedule::OpKind::kRotaryForward, rotary_forward, rotary_scratch},
    {schedule::OpKind::kRotaryBackward, rotary_backward, rotary_scratch},
    {schedule::OpKind::kAttentionForward, attention_forward},
    {schedule::OpKind::kAttentionBackward, attention_backward, attention_backward_scratch},
    {schedule::OpKind::kGeluForward, gelu_forward},
    {schedule::OpKind::kGeluBackward, gelu_backward},
    {schedule::OpKind::kSwigluForward, swiglu_forward},
    {schedule::OpKind::kSwigluBackward, swiglu_backward},
    {schedule::OpKind::kDropoutForward, dropout_forward},
    {schedule::OpKind::kDropoutBackward, dropout_backward},
    {schedule::OpKind::kAdd, add},
    {schedule::OpKind::kCrossEntropy, cross_entropy, cross_entropy_scratch},
    {schedule::OpKind::kVocabMax, vocab_max},
    {schedule::OpKind::kVocabSumExp, vocab_sum_exp},
    {schedule::OpKind::kVocabCrossEntropy, vocab_cross_entropy},
    {schedule::OpKind::kGradientNorm, gradient_norm, gradient_norm_scratch},
    {schedule::OpKind::kLossScale, loss_scale},
    {schedule::OpKind::kAdamW, adamw, optimizer_scratch},
    {schedule::OpKind::kSgd, sgd, optimizer_scratch},
});

const Entry& entry_of(schedule::OpKind kind) {
  for (const Entry& entry : kTable) {
    if (entry.kind == kind) return entry;
  }
  throw std::logic_error(std::string("no device kernel is registered for ") + plan::to_string(kind));
}

}  // namespace

DeviceKernel device_kernel_for(schedule::OpKind kind) {
  return plan::is_collective(kind) ? nullptr : entry_of(kind).kernel;
}

PairKernel pair_kernel_for(const DeviceCall& first, const DeviceCall& second) {
  if (add_norm_fits(first, second)) return add_norm_forward;
  if (update_copy_fits(first, second)) return update_and_copy;
  return product_pair_for(first, second);
}

std::int64_t scratch_floats(const plan::Operation& operation) {
  if (plan::is_collective(operation.kind)) return 0;
  const Entry& entry = entry_of(operation.kind);
  return entry.scratch == nullptr ? 0 : entry.scratch(operation);
}

std::int64_t scratch_bytes(const plan::StepPlan& plan, schedule::Stream stream) {
  std::int64_t floats = 0;
  for (const plan::Operation& operation : plan.operations) {
    if (operation.stream == stream) floats = std::max(floats, scratch_floats(operation));
  }
  return floats * schedule::size_bytes(schedule::DType::kFp32);
}

}  // namespace krigtune::cuda
