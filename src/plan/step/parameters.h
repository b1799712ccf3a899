#pragma once
#include <vector>

#include "krigtune/plan/knobs.h"
#include "krigtune/plan/step_plan.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// Indices into ParameterTable::tensors; -1: the model has no such tensor.
inline constexpr int kNoTensor = -1;
struct NormTensors {
  int gain = kNoTensor, bias = kNoTensor;
};
struct LinearTensors {
  int weight = kNoTensor, bias = kNoTensor;
};
/// Of one transformer block; `up` holds gate and up where the MLP is gated.
struct BlockTensors {
  NormTensors norm1;
  LinearTensors qkv, out;
  NormTensors norm2;
  LinearTensors up, down;
};

/// The parameters that one tensor-parallel rank holds, in model order, padded so that the data-parallel ranks share
/// each tensor in pieces of 64 bytes in the type that the model computes in.
struct ParameterTable {
  std::vector<ParameterTensor> tensors;
  std::int64_t padded_elems = 0;  ///< Psi
  int table = kNoTensor, positions = kNoTensor;
  std::vector<BlockTensors> blocks;
  NormTensors final_norm;
  int head = kNoTensor;  ///< `table` where the head is tied
  /// By tensor: each tensor-parallel rank computes a part of the gradient (of its tokens, under sequence parallelism):
  /// summed over the tensor group before it is reduced over the data group. Empty: none.
  std::vector<bool> partial_gradients;
};
ParameterTable make_parameters(const Workload& workload, const Knobs& knobs);

/// Rows of the token table and of the head that one tensor rank holds; what fills up counts for nothing.
std::int64_t vocab_rows(const ModelSpec& model, std::int64_t tensor_ranks);
/// Width of all key heads, and of all value heads.
std::int64_t kv_width(const ModelSpec& model);
/// Layer-norm models carry biases in their linear layers (GPT-2), RMS-norm models do not (Llama).
bool has_biases(const ModelSpec& model);

}  // namespace krigtune
