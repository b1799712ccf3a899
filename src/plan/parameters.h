#pragma once
#include <array>
#include <vector>

#include "krigtune/plan/step_plan.h"
#include "krigtune/workload/model.h"

namespace krigtune {

/// Indices into ParameterTable::tensors of one transformer block.
struct BlockTensors {
  int norm1_gain, norm1_bias, qkv_weight, qkv_bias, out_weight, out_bias;
  int norm2_gain, norm2_bias, up_weight, up_bias, down_weight, down_bias;
};

/// The parameters of a GPT-2 style model in model order, padded so that N ranks share each tensor in 64-byte pieces.
struct ParameterTable {
  std::vector<ParameterTensor> tensors;
  std::int64_t padded_elems = 0;  ///< Psi
  int table = 0, positions = 0, final_gain = 0, final_bias = 0;
  std::vector<BlockTensors> blocks;
  /// By tensor: each tensor-parallel rank computes a part of the gradient (of its tokens, under sequence parallelism):
  /// summed over the tensor group before it is reduced over the data group. Empty: none.
  std::vector<bool> partial_gradients;
};
ParameterTable make_parameters(const ModelSpec& model, std::int64_t ranks);

}  // namespace krigtune
