#pragma once
// The kernels of the backward pass of flash attention (flash_attention_backward.cu has the equations).
#include "engine/cuda/kernels/flash_attention_tiles.h"

namespace krigtune::cuda {

inline constexpr int kBlockRows = 128;  ///< keys or queries of a block

struct FlashBackward {
  HeadPlaces places;
  float scale;
  uint4* dout;
  uint4* qkv;
  uint4* out;
  const float* logsumexp;
  uint4* dqkv;
  bool adds;
  int padded_seq;      ///< a multiple of kBlockRows
  float2* of_queries;  ///< batch x heads x padded_seq: log2(e) L and D; infinity and 0 beyond the sequence

  __device__ const float2* of_head(int b, int head) const {
    return of_queries + (static_cast<std::int64_t>(b) * places.heads + head) * padded_seq;
  }
};

/// Returns the bytes that the blocks of one head of a sequence read again and again: keys and values, or queries and
/// dout.
inline std::int64_t head_bytes(const AttentionSizes& z) { return 2 * 2 * z.seq * z.d; }

/// Returns the bytes of shared memory of a block of start_key_gradients, which needs the most of all kernels.
int key_gradient_shared_bytes(std::int64_t head_size);
/// Computes dK and dV. Requires of_queries.
void start_key_gradients(Queue queue, schedule::DType type, const AttentionSizes& z, const FlashBackward& g);
/// Computes dQ, dK and dV on a GPU that hopper_attention_forward supports. Requires of_queries.
void start_hopper_gradients(Queue queue, schedule::DType type, const AttentionSizes& z, const FlashBackward& g);

}  // namespace krigtune::cuda
