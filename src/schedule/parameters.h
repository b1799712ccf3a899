#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/knobs.h"
#include "workload/layer_kinds.h"
#include "workload/training.h"

namespace krigtune::schedule {

/// How a tensor is split over the tensor-parallel ranks.
enum class Split : std::uint8_t { kNone, kRows, kColumns };

/// One parameter tensor as one tensor-parallel rank holds it, in model order. Its padded length is a multiple of N * 64
/// bytes, so that every rank's shard starts at a multiple of 64 bytes. Tensor t occupies [begin_elems, + elems) of the
/// whole, and its shard starts at begin_elems / N of a shard.
struct ParameterTensor {
  std::string name;
  std::int64_t elems = 0;
  std::int64_t padded_elems = 0;
  std::int64_t begin_elems = 0;
  double initial_mean = 0.0;
  double initial_stddev = 0.0;
  Split split = Split::kNone;
  /// The rows of each block of the whole tensor that is split separately (q, k, v; gate, up), and the length of a row.
  /// A tensor that is split over columns has one block. Rows that pad a block to a multiple of the ranks (a vocabulary)
  /// follow its end and start as zeros.
  std::vector<std::int64_t> block_rows{};
  std::int64_t row_elems = 0;
  std::int64_t matrices = 1;  ///< of equal size in it: those of experts
  bool of_experts = false;    ///< each rank has those of its own experts
  std::int64_t columns = 0;   ///< of each of them on this rank, if it is a matrix of a block; otherwise 0
  bool trained = true;        ///< otherwise frozen: without gradient and optimizer state
  /// Elements of the trained tensors before it.
  std::int64_t begin_trained_elems = 0;
};

/// Returns the element of the whole tensor (row-major, blocks one after the other) that `tensor_rank` holds at `elem`;
/// -1 for padding.
std::int64_t whole_element(const ParameterTensor& tensor, std::int64_t tensor_rank, std::int64_t tensor_ranks,
                           std::int64_t elem);

/// Indices into ParameterTable::tensors; kNoTensor if the model has no such tensor.
inline constexpr int kNoTensor = -1;
struct NormTensors {
  int gain = kNoTensor, bias = kNoTensor;
  bool is_plain = false;  ///< there is a norm, and it has neither

  bool exists() const { return gain != kNoTensor || is_plain; }
};
/// An adapter on the outputs [begin_outputs, + outputs) of a linear layer: their part B A x of y.
struct AdapterTensors {
  workload::AdaptedLayer layer{};
  int a = kNoTensor, b = kNoTensor;
  std::int64_t rank = 0;
  std::int64_t begin_outputs = 0, outputs = 0;
};
struct LinearTensors {
  int weight = kNoTensor, bias = kNoTensor;
  bool packed = false;  ///< the weight is quantised: its elements are words of the model's type that contain the bits
  std::vector<AdapterTensors> adapters = {};

  LinearTensors without_bias() const { return {weight, kNoTensor, packed, adapters}; }
};
/// The tensors of latent attention (workload::LatentSpec), in place of `qkv`. The products that make the latents are
/// whole on every tensor rank, as in Megatron, and those that make the heads of them are split by heads.
struct LatentTensors {
  LinearTensors q_down;     ///< queries' latent; missing without one
  int q_norm = kNoTensor;   ///< its gain
  LinearTensors q_up;       ///< queries, of their latent or of the block's input
  LinearTensors kv_down;    ///< latent of keys and values, then the keys' part with positions
  int kv_norm = kNoTensor;  ///< gain of the latent's norm
  LinearTensors kv_up;      ///< of each head, keys without positions and values
};
/// The tensors of a mixer in place of attention (workload::MambaSpec, workload::DeltaSpec), beside the product of its
/// output. All are split by heads over the tensor ranks, but for a norm that all heads share.
struct MixerTensors {
  LinearTensors in;
  int conv = kNoTensor;   ///< the convolution's weights, and its bias
  int heads = kNoTensor;  ///< a few numbers for each head
  int norm = kNoTensor;   ///< its gain
};
/// The tensors of one transformer block; `up` contains gate and up if the MLP is gated. In a block of experts, `up` and
/// `down` are those of the MLP that every token passes, and exist if there is one.
struct BlockTensors {
  int first = kNoTensor;  ///< of the block, in model order
  workload::LayerKind kind{};
  bool has_experts = false;      ///< in place of the MLP or beside it
  std::int64_t mlp_columns = 0;  ///< width of the MLP on one tensor rank; 0: there is none
  NormTensors norm1;             ///< missing with norms of outputs only
  LinearTensors qkv;
  LatentTensors latent;
  MixerTensors mixer;
  int q_norm = kNoTensor, k_norm = kNoTensor;  ///< gain, then bias if layer norms have one
  LinearTensors out;                           ///< of attention or the mixer
  NormTensors post_norm1;                      ///< of its output
  NormTensors norm2;                           ///< missing if the MLP shares norm1
  LinearTensors router, experts_up, experts_down;
  LinearTensors to_latent, from_latent;  ///< of experts that work on a latent (workload::ExpertSpec)
  LinearTensors up, down;
  NormTensors post_norm2;  ///< of the MLP's output
  int others = kNoTensor;  ///< workload::OtherParameters
};

/// The tensors of a layer that predicts a further token (workload::MtpSpec).
struct MtpTensors {
  int first = kNoTensor;  ///< in model order
  NormTensors embedding_norm, hidden_norm;
  LinearTensors join;  ///< of both, side by side, to the model's width; split over its rows
  std::vector<BlockTensors> blocks;
  NormTensors final_norm;
};

/// The parameters that one tensor-parallel rank holds, in model order (layers by kind, wherever workload::ModelSpec
/// says that they are, those with experts last), padded so that each tensor divides over the data-parallel ranks in
/// pieces of 64 bytes in the model's type.
struct ParameterTable {
  std::vector<ParameterTensor> tensors;
  std::int64_t padded_elems = 0;  ///< Psi
  int table = kNoTensor, positions = kNoTensor;
  std::vector<BlockTensors> blocks;
  int behind_blocks = 0;  ///< the first tensor of the head; the number of all if it has none of its own
  NormTensors final_norm;
  int head = kNoTensor;         ///< equal to `table` if the head is tied
  std::vector<MtpTensors> mtp;  ///< those with tensors of their own; they belong to the head
  int others = kNoTensor;       ///< workload::OtherParameters
  /// For each tensor: whether each tensor-parallel rank computes only a part of the gradient (for its tokens, under
  /// sequence parallelism, or of an adapter's matrix that is not split), so that the gradient is summed over the
  /// tensor group before it is reduced over the data group. Empty: no tensor.
  std::vector<bool> partial_gradients;
};
ParameterTable make_parameters(const workload::Workload& workload, const Knobs& knobs);

/// Returns the rows of the token table and of the head that one tensor rank holds; padding rows do not contribute.
std::int64_t vocab_rows(const workload::ModelSpec& model, std::int64_t tensor_ranks);
/// Returns the trained tensors in the order in which backward completes their gradients.
std::vector<int> gradient_ready_order(const ParameterTable& table);

}  // namespace krigtune::schedule
