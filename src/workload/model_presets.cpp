#include "workload/model_presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::workload {

// Sizes of published models.
// GPT-2: Radford et al. 2019, table 2, and the released hparams (vocabulary 50257, context 1024).
// Llama: Touvron et al. 2023 (arXiv:2302.13971), table 2; Llama 2: arXiv:2307.09288, table 1 and the released
// params.json; Llama 3: arXiv:2407.21783, table 3. Widths of the MLP: the released config.json.

namespace {

struct Preset {
  std::string_view name;
  std::string_view alias;  ///< may be empty
  ModelSpec sizes;
};

constexpr ModelSpec gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .vocab = 50257, .seq_len = 1024};
}

constexpr ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                          std::int64_t ffn_hidden, std::int64_t vocab, std::int64_t seq_len) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .ffn_hidden = ffn_hidden,
          .vocab = vocab,
          .seq_len = seq_len,
          .gated_mlp = true,
          .tied_embeddings = false,
          .positions = Positions::kRotary,
          .norm = Norm::kRmsNorm};
}

constexpr std::array kPresets = {
    Preset{"gpt2-124m", "gpt2", gpt2(12, 768, 12)},
    Preset{"gpt2-350m", "gpt2-medium", gpt2(24, 1024, 16)},
    Preset{"gpt2-774m", "gpt2-large", gpt2(36, 1280, 20)},
    Preset{"gpt2-1.5b", "gpt2-xl", gpt2(48, 1600, 25)},
    Preset{"llama-7b", "", llama(32, 4096, 32, 32, 11008, 32000, 2048)},
    Preset{"llama-13b", "", llama(40, 5120, 40, 40, 13824, 32000, 2048)},
    Preset{"llama-2-7b", "", llama(32, 4096, 32, 32, 11008, 32000, 4096)},
    Preset{"llama-2-13b", "", llama(40, 5120, 40, 40, 13824, 32000, 4096)},
    Preset{"llama-2-70b", "", llama(80, 8192, 64, 8, 28672, 32000, 4096)},
    Preset{"llama-3-8b", "", llama(32, 4096, 32, 8, 14336, 128256, 8192)},
    Preset{"llama-3-70b", "", llama(80, 8192, 64, 8, 28672, 128256, 8192)},
};

}  // namespace

ModelSpec published_sizes(const std::string& name, const std::string& where) {
  const std::string wanted = lower_case(name);
  for (const Preset& preset : kPresets) {
    if (preset.name == wanted || (!preset.alias.empty() && preset.alias == wanted)) return preset.sizes;
  }
  throw UserError(fmt::format("{}unknown model preset '{}'", where, name), suggestion(wanted, model_preset_names()));
}

void resolve(ModelSpec& model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.ffn_hidden == 0) model.ffn_hidden = 4 * model.hidden;
}

ModelSpec model_preset(const std::string& name) {
  ModelSpec model = published_sizes(name, "");
  resolve(model);
  return model;
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

// Keys and defaults: configuration_gpt2.py, configuration_llama.py and configuration_mistral.py of
// huggingface/transformers. Keys that change neither FLOPs nor bytes (rope_theta, rope_scaling, epsilons) are not read.
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

// The model here has one dropout probability, so all of GPT-2's must be equal.
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
  model.ffn_hidden = config.integer("n_inner", 0);  // null: four times n_embd
  if (model.ffn_hidden < 0) config.fail("n_inner", "must be at least 1", "leave it out for four times n_embd");
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

// Llama and Mistral differ only in their defaults.
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

}  // namespace krigtune::workload
