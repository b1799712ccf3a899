#pragma once
#include <cstdint>

#include "workload/model.h"

// Families of published models, as the tables of presets and hub names write them. Sizes that are left out are derived.
namespace krigtune::workload {

constexpr ModelSpec gpt_sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                              std::int64_t seq_len) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .vocab = vocab, .seq_len = seq_len};
}

constexpr ModelSpec llama_sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                                std::int64_t ffn_hidden, std::int64_t vocab, std::int64_t seq_len, bool tied = false) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .ffn_hidden = ffn_hidden,
          .vocab = vocab,
          .seq_len = seq_len,
          .gated_mlp = true,
          .tied_embeddings = tied,
          .positions = Positions::kRotary,
          .norm = Norm::kRmsNorm};
}

}  // namespace krigtune::workload
