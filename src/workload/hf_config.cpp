// Keys and defaults: configuration_gpt2.py, configuration_llama.py and configuration_mistral.py of
// huggingface/transformers. What changes neither FLOPs nor bytes (rope_theta, rope_scaling, epsilons) is not read.
#include "hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"

namespace krigtune {
namespace {

std::int64_t required_size(JsonObject& config, const char* key) {
  const std::optional<std::int64_t> value = config.optional_integer(key);
  if (!value || *value < 1) config.fail(key, "a size of 1 or more is needed", "is this the model's config.json?");
  return *value;
}

std::int64_t seq_len(JsonObject& config, const char* key, const HfOverrides& overrides) {
  return overrides.seq_len ? *overrides.seq_len : required_size(config, key);
}

void check_activation(JsonObject& config, const char* key, const char* fallback, std::string_view family) {
  const std::string name = config.text(key, fallback);
  if (name.starts_with(family)) return;
  config.fail(key, fmt::format("the activation '{}' is not supported", name),
              fmt::format("models of this type with {} are", family));
}

// One probability for all its dropouts is what a model here has.
double gpt2_dropout(JsonObject& config) {
  constexpr double kDefault = 0.1;
  const double residual = config.number("resid_pdrop", kDefault);
  const double embedding = config.number("embd_pdrop", kDefault);
  const double attention = config.number("attn_pdrop", kDefault);
  if (residual == embedding && residual == attention) return residual;
  config.fail("resid_pdrop", "resid_pdrop, embd_pdrop and attn_pdrop differ",
              "write the one \"dropout\" to train with beside \"hf_config\"");
}

ModelSpec gpt2_from(JsonObject& config, const HfOverrides& overrides) {
  ModelSpec model;
  model.layers = required_size(config, "n_layer");
  model.hidden = required_size(config, "n_embd");
  model.heads = required_size(config, "n_head");
  model.vocab = required_size(config, "vocab_size");
  model.ffn_hidden = config.integer("n_inner", 0);
  model.seq_len = seq_len(config, "n_positions", overrides);
  model.tied_embeddings = config.boolean("tie_word_embeddings", true);
  if (!overrides.dropout) model.dropout = gpt2_dropout(config);
  check_activation(config, "activation_function", "gelu_new", "gelu");
  return model;
}

void refuse_biases(JsonObject& config) {
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (config.boolean(key, false)) config.fail(key, "biases are not supported", "models of this type without are");
  }
}

void check_attention(JsonObject& config, const ModelSpec& model, const HfOverrides& overrides) {
  const std::optional<std::int64_t> width = config.optional_integer("head_dim");
  if (width && *width * model.heads != model.hidden) {
    config.fail("head_dim", fmt::format("{} heads of {} are not hidden_size {}", model.heads, *width, model.hidden),
                "models where they are the same are supported");
  }
  const std::optional<std::int64_t> window = config.optional_integer("sliding_window");
  if (window && *window < model.seq_len) {
    config.fail("sliding_window",
                fmt::format("attention over a window ({} of {} tokens) is not supported", *window, model.seq_len),
                fmt::format("write \"seq_len\": {} or less beside \"hf_config\"", *window));
  }
  if (!overrides.dropout && config.number("attention_dropout", 0.0) != 0.0) {
    config.fail("attention_dropout", "a dropout of attention alone is not supported",
                "write the one \"dropout\" to train with beside \"hf_config\"");
  }
}

// Llama and Mistral, which differ in their defaults only.
ModelSpec llama_from(JsonObject& config, const HfOverrides& overrides, bool kv_heads_needed) {
  ModelSpec model;
  model.layers = required_size(config, "num_hidden_layers");
  model.hidden = required_size(config, "hidden_size");
  model.heads = required_size(config, "num_attention_heads");
  model.kv_heads =
      kv_heads_needed || config.has("num_key_value_heads") ? required_size(config, "num_key_value_heads") : model.heads;
  model.ffn_hidden = required_size(config, "intermediate_size");
  model.vocab = required_size(config, "vocab_size");
  model.seq_len = seq_len(config, "max_position_embeddings", overrides);
  model.gated_mlp = true;
  model.tied_embeddings = config.boolean("tie_word_embeddings", false);
  model.positions = Positions::kRotary;
  model.norm = Norm::kRmsNorm;
  check_activation(config, "hidden_act", "silu", "silu");
  refuse_biases(config);
  check_attention(config, model, overrides);
  return model;
}

}  // namespace

ModelSpec read_hf_config(const Json& json, const std::string& source, const std::string& pointer,
                         const HfOverrides& overrides) {
  JsonObject config(json, source, pointer);
  const std::string type = config.text("model_type", "");
  if (type == "gpt2") return gpt2_from(config, overrides);
  if (type == "llama") return llama_from(config, overrides, false);
  if (type == "mistral") return llama_from(config, overrides, true);
  config.fail("model_type", type.empty() ? "is missing" : fmt::format("'{}' is not supported", type),
              "gpt2, llama and mistral are; for others write the sizes");
}

}  // namespace krigtune
