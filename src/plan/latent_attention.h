#pragma once
#include "plan/step_operations.h"

namespace krigtune::plan {

/// What latent attention keeps of the queries' latent (missing without one), and of the latent of keys and values: what
/// was made of the block's input, and the norm's output and numbers. All are of the own tokens.
struct LatentBuffers {
  BufferId q = -1, q_normed = -1, q_stats = -1;
  BufferId kv = -1, kv_normed = -1, kv_stats = -1;
  BufferId beside = -1;  ///< keys without positions: see StepOperations::keeps_keys_beside_values
};

/// Queries, keys and values of multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1), in the
/// order of DeepSeek's published code and of Megatron Core's multi_latent_attention.py: products that make the latents
/// on the rank's own tokens, their norms, products that make the heads (split by heads over the tensor ranks), and then
/// rows of queries, keys and values, in which every head has a copy of the keys' part with positions. Attention reads
/// these rows as those of ordinary attention. `rest` says what is kept; the heads' products are not, because the rows
/// have them.
LatentBuffers latents_forward(StepOperations& to, const schedule::LatentTensors& tensors, BufferId norm, BufferId qkv,
                              schedule::Term rest);
/// Returns the gradient of `norm`, the block's input, for the own tokens.
Operand latents_backward(StepOperations& to, const schedule::LatentTensors& tensors, const LatentBuffers& kept,
                         BufferId norm, BufferId dqkv);

}  // namespace krigtune::plan
