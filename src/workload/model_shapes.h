#pragma once
#include <cstdint>
#include <string_view>

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

/// What Qwen3-Next and Qwen3.5 have that is planned as parameters alone.
constexpr std::string_view kOutputGateCaveat =
    "gates of attention's output, which have only parameters here: a little more time";

/// Parameters of the layer and the norm before the head of a masked language model.
constexpr std::int64_t encoder_head(std::int64_t hidden) { return hidden * (hidden + 1) + 2 * hidden; }

/// What an encoder such as BERT has that a GPT of its sizes has not. A head for classes or answers replaces the one
/// over the vocabulary in most scripts that train it further.
constexpr std::string_view kEncoderCaveat =
    "an encoder: attention to later tokens too, and often a smaller head than a GPT's: another memory and time";

}  // namespace krigtune::workload
