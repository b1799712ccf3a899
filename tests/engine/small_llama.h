#pragma once
#include <cmath>
#include <vector>

#include "small_model.h"

namespace krigtune {

/// Like small_model, but of the other family: rotary positions, RMS norms, grouped queries, SwiGLU, no biases; with
/// clipping.
inline workload::Workload llama(workload::Precision precision) {
  workload::Workload workload = small_model();
  workload.precision = precision;
  workload.gradient_clipping = 0.5;
  workload.model = {.layers = 2,
                    .hidden = 24,
                    .heads = 4,
                    .kv_heads = 2,
                    .ffn_hidden = 40,
                    .vocab = 67,
                    .seq_len = 9,
                    .gated_mlp = true,
                    .tied_embeddings = false,
                    .positions = workload::Positions::kRotary,
                    .norm = workload::Norm::kRmsNorm};
  return workload;
}

/// The same with heads of another width than hidden / heads and norms of queries and keys (Qwen3), of which adapters
/// are trained if `adapter_rank` is not 0.
inline workload::Workload qwen3(workload::Precision precision, std::int64_t adapter_rank = 0, double dropout = 0.0) {
  workload::Workload workload = llama(precision);
  workload.model.head_dim = 8;
  workload.model.qk_norm = workload::QkNorm::kHead;
  workload.training.lora.rank = adapter_rank;
  workload.training.lora.dropout = dropout;
  return workload;
}

/// ||a - b||
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2.0);
  }
  return std::sqrt(squares);
}

}  // namespace krigtune
