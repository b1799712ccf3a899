// Keys and defaults: configuration_nemotron_h.py, configuration_bamba.py, configuration_granitemoehybrid.py,
// configuration_qwen3_next.py and configuration_olmo_hybrid.py of huggingface/transformers.
#include "workload/hf_hybrids.h"

#include <array>
#include <string_view>

#include "core/text.h"

namespace krigtune::workload {
namespace {

constexpr std::array kMambas = std::to_array<std::string_view>({"nemotron_h", "bamba", "granitemoehybrid"});

// What each layer is, in the words of newer releases.
std::vector<std::string> words_of_layers(HfKeys& keys) {
  for (const char* key : {"layers_block_type", "layer_types"}) {
    if (std::vector<std::string> words = keys.words(key); !words.empty()) return words;
  }
  std::vector<std::string> words;
  for (const char letter : keys.text("hybrid_override_pattern")) {
    switch (letter) {
      case 'M':
        words.emplace_back("mamba");
        break;
      case '*':
        words.emplace_back("attention");
        break;
      case 'E':
        words.emplace_back("moe");
        break;
      case '-':
        words.emplace_back("mlp");
        break;
      default:
        break;
    }
  }
  return words;
}

LayerKind kind_of(const std::string& word, Mixer linear, FeedForward beside) {
  if (word == "moe") return {Mixer::kNone, FeedForward::kExperts};
  if (word == "mlp") return {Mixer::kNone, FeedForward::kMlp};
  const bool is_linear = word == "mamba" || word == "mamba2" || word == "linear_attention";
  return {is_linear ? linear : Mixer::kAttention, beside};
}

MambaSpec mamba_of(HfKeys& keys) {
  MambaSpec mamba;
  mamba.heads = keys.size({"mamba_num_heads", "mamba_n_heads"}).value_or(0);
  mamba.head_dim = keys.size({"mamba_head_dim", "mamba_d_head"}).value_or(mamba.head_dim);
  mamba.state = keys.size({"ssm_state_size", "mamba_d_state"}).value_or(mamba.state);
  mamba.groups = keys.size({"n_groups", "mamba_n_groups"}).value_or(mamba.groups);
  mamba.conv = keys.size({"conv_kernel", "mamba_d_conv"}).value_or(mamba.conv);
  mamba.chunk = keys.size({"chunk_size", "mamba_chunk_size"}).value_or(mamba.chunk);
  return mamba;
}

DeltaSpec delta_of(HfKeys& keys) {
  DeltaSpec delta;
  delta.value_heads = keys.size_or("linear_num_value_heads", 0);
  delta.key_heads = keys.size_or("linear_num_key_heads", delta.value_heads);
  delta.key_dim = keys.size_or("linear_key_head_dim", delta.key_dim);
  delta.value_dim = keys.size_or("linear_value_head_dim", delta.value_dim);
  delta.conv = keys.size_or("linear_conv_kernel_dim", delta.conv);
  return delta;
}

std::vector<std::string> hybrid_words(const std::string& type, HfKeys& keys, std::int64_t layers) {
  std::vector<std::string> words = words_of_layers(keys);
  if (type != "bamba" || !words.empty()) return words;
  words.assign(static_cast<std::size_t>(layers), "mamba");
  for (const std::int64_t layer : keys.numbers("attn_layer_indices")) {
    if (layer >= 0 && layer < layers) words[static_cast<std::size_t>(layer)] = "attention";
  }
  return words;
}

}  // namespace

std::int64_t listed_layers(HfKeys& keys) { return static_cast<std::int64_t>(words_of_layers(keys).size()); }

void set_hybrid(const std::string& type, HfKeys& keys, const std::vector<bool>& dense, ModelSpec& model) {
  const MambaSpec mamba = is_one_of(type, kMambas) ? mamba_of(keys) : MambaSpec{};
  const DeltaSpec delta = delta_of(keys);
  const bool is_mamba = mamba.heads > 0;
  const bool is_delta = !is_mamba && delta.value_heads > 0;
  const std::vector<std::string> words = hybrid_words(type, keys, model.layers);
  if ((!is_mamba && !is_delta) || static_cast<std::int64_t>(words.size()) != model.layers) return;
  ModelSpec hybrid = model;
  hybrid.layer_kinds = {};
  for (std::size_t layer = 0; layer < words.size(); ++layer) {
    const bool has_experts = model.has_experts() && !dense[layer];
    const FeedForward beside = type == "nemotron_h" ? FeedForward::kNone
                               : has_experts        ? FeedForward::kExperts
                                                    : FeedForward::kMlp;
    ++hybrid.layer_kinds.of(kind_of(words[layer], is_mamba ? Mixer::kMamba : Mixer::kDelta, beside));
  }
  hybrid.experts.dense_layers = 0;
  hybrid.experts.dense_places = DensePlaces::kFirst;
  if (hybrid.layers_with(FeedForward::kExperts) == 0) hybrid.experts = {};
  if (hybrid.layers_with(Mixer::kMamba) > 0) hybrid.mamba = mamba;
  if (hybrid.layers_with(Mixer::kDelta) > 0) hybrid.delta = delta;
  const bool mixes = hybrid.mamba.heads > 0 || hybrid.delta.value_heads > 0;
  const bool divides = hybrid.mamba.heads % hybrid.mamba.groups == 0 &&
                       (hybrid.delta.key_heads == 0 || hybrid.delta.value_heads % hybrid.delta.key_heads == 0);
  if ((mixes || type == "nemotron_h") && divides && hybrid.kinds().size() <= kMostKinds) model = hybrid;
}

}  // namespace krigtune::workload
