#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/knobs.h"

namespace krigtune::schedule {

/// How a tensor is cut over the tensor-parallel ranks.
enum class Split : std::uint8_t { kNone, kRows, kColumns };

/// One parameter tensor as one tensor-parallel rank holds it, in model order. Its padded length is a multiple of
/// N * 64 bytes: every rank's shard of it starts on 64 bytes. Tensor t lies at [begin_elems, + elems) of the whole, its
/// shard at begin_elems / N of a shard.
struct ParameterTensor {
  std::string name;
  std::int64_t elems = 0;
  std::int64_t padded_elems = 0;
  std::int64_t begin_elems = 0;
  double initial_mean = 0.0;
  double initial_stddev = 0.0;
  Split split = Split::kNone;
  /// Of the whole tensor: blocks of rows, each cut for itself (q, k, v; gate, up), and the length of a row. A split
  /// over columns has one block. Rows that fill a block up to a multiple of the ranks (a vocabulary) are behind its end
  /// and start as zeros.
  std::vector<std::int64_t> block_rows{};
  std::int64_t row_elems = 0;
};

/// The element of the whole tensor (row-major, blocks one after the other) that `tensor_rank` holds at `elem`; -1 for
/// one that fills up.
std::int64_t whole_element(const ParameterTensor& tensor, std::int64_t tensor_rank, std::int64_t tensor_ranks,
                           std::int64_t elem);

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
ParameterTable make_parameters(const workload::Workload& workload, const Knobs& knobs);

/// Rows of the token table and of the head that one tensor rank holds; what fills up counts for nothing.
std::int64_t vocab_rows(const workload::ModelSpec& model, std::int64_t tensor_ranks);
/// Width of all key heads, and of all value heads.
std::int64_t kv_width(const workload::ModelSpec& model);
/// Layer-norm models carry biases in their linear layers (GPT-2), RMS-norm models do not (Llama).
bool has_biases(const workload::ModelSpec& model);
/// The tensors in the order in which backward completes their gradients.
std::vector<int> gradient_ready_order(const ParameterTable& table);

}  // namespace krigtune::schedule
