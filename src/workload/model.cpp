// Parameters of a decoder-only transformer: embeddings, L blocks, a final norm, a head.
//
//   block      = Wq + Wk + Wv + Wo + MLP + 2 norms = h (h + 2 k) + h h + m h f + 2 norm,   k = kv_heads h / heads
//   MLP        : m = 2 (up, down), gated m = 3 (gate, up, down)
//   norm       = 2 h (gain, bias) with layer norm, h with RMS norm
//   biases     = (h + 2 k) + h + (m - 1) f + h a block with layer norm, none with RMS norm
//   embeddings = V h (+ s h learned positions) (+ V h where the head is not tied)
#include "krigtune/workload/model.h"

#include <fmt/format.h>

#include "hf_config.h"
#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "presets.h"
#include "words.h"

namespace krigtune {
namespace {

constexpr Words<Positions, 2> kPositionWords = {{{"learned", Positions::kLearned}, {"rotary", Positions::kRotary}}};
constexpr Words<Norm, 2> kNormWords = {{{"layernorm", Norm::kLayerNorm}, {"rmsnorm", Norm::kRmsNorm}}};

std::int64_t kv_width(const ModelSpec& model) { return model.hidden / model.heads * model.kv_heads; }

// Elements of all weight matrices of one block.
std::int64_t block_matrices(const ModelSpec& model) {
  const std::int64_t attention = model.hidden * (model.hidden + 2 * kv_width(model)) + model.hidden * model.hidden;
  return attention + (model.gated_mlp ? 3 : 2) * model.hidden * model.ffn_hidden;
}

constexpr Words<Attention, 2> kAttentionWords = {{{"flash", Attention::kFlash}, {"eager", Attention::kEager}}};

struct Size {
  const char* key;
  std::int64_t ModelSpec::*member;
  std::int64_t largest;  ///< so that the count of parameters fits into 64 bits; far beyond any model
};
constexpr Size kSizes[] = {
    {"layers", &ModelSpec::layers, 100'000},
    {"hidden", &ModelSpec::hidden, 1'000'000},
    {"heads", &ModelSpec::heads, 1'000'000},
    {"kv_heads", &ModelSpec::kv_heads, 1'000'000},
    {"ffn_hidden", &ModelSpec::ffn_hidden, 10'000'000},
    {"vocab", &ModelSpec::vocab, 1'000'000'000},
    {"seq_len", &ModelSpec::seq_len, 1'000'000'000},
};

void read_sizes(JsonObject& object, ModelSpec& model) {
  for (const Size& size : kSizes) {
    const std::optional<std::int64_t> value = object.optional_integer(size.key);
    if (!value) continue;
    if (*value < 1 || *value > size.largest) {
      object.fail(size.key, fmt::format("{} is no size of a model", *value),
                  fmt::format("write an integer from 1 to {}", size.largest));
    }
    model.*size.member = *value;
  }
}

ModelSpec hf_model(JsonObject& object, const Json& config, const std::filesystem::path& base_dir) {
  HfOverrides overrides;
  overrides.dropout = object.has("dropout");
  overrides.seq_len = object.optional_integer("seq_len");
  if (!config.is_string()) return read_hf_config(config, object.source(), object.pointer("hf_config"), overrides);
  const std::filesystem::path file = base_dir / config.get<std::string>();
  return read_hf_config(load_json(file), file.string(), "", overrides);
}

// What a published model gives; sizes beside it override it.
ModelSpec published_model(JsonObject& object, const std::filesystem::path& base_dir) {
  const Json* config = object.find("hf_config");
  const std::string preset = object.text("preset", "");
  if (!object.has("preset")) return config == nullptr ? ModelSpec{} : hf_model(object, *config, base_dir);
  if (config != nullptr) object.fail("hf_config", "there is a \"preset\" too", "remove one of them");
  return published_sizes(preset, fmt::format("{}: {}: ", object.source(), object.pointer("preset")));
}

void check_model(const JsonObject& object, const ModelSpec& model) {
  for (const Size& size : kSizes) {
    if (model.*size.member == 0) object.fail(size.key, "is missing", "add it, or name a \"preset\"");
  }
  if (model.hidden % model.heads != 0) {
    object.fail("heads", fmt::format("hidden {} is no multiple of {} heads", model.hidden, model.heads),
                "mend one of them");
  }
  if (model.heads % model.kv_heads != 0) {
    object.fail("kv_heads", fmt::format("{} heads are no multiple of {} kv_heads", model.heads, model.kv_heads),
                "mend one of them");
  }
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) {
  const bool has_biases = model.norm == Norm::kLayerNorm;
  const std::int64_t norm = (has_biases ? 2 : 1) * model.hidden;
  const std::int64_t biases =
      (model.hidden + 2 * kv_width(model)) + model.hidden + (model.gated_mlp ? 2 : 1) * model.ffn_hidden + model.hidden;
  const std::int64_t block = block_matrices(model) + 2 * norm + (has_biases ? biases : 0);
  const std::int64_t table = model.vocab * model.hidden;
  const std::int64_t positions = model.positions == Positions::kLearned ? model.seq_len * model.hidden : 0;
  return model.layers * block + norm + table + positions + (model.tied_embeddings ? 0 : table);
}

namespace {

// 6 P_mat + 12 L s h c a token; `causal_share` is c.
double transformer_flops(const ModelSpec& model, std::int64_t sequences, double causal_share) {
  const auto seq_len = static_cast<double>(model.seq_len);
  const double matrices = static_cast<double>(model.layers) * static_cast<double>(block_matrices(model)) +
                          static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
  const double attention =
      12.0 * static_cast<double>(model.layers) * seq_len * static_cast<double>(model.hidden) * causal_share;
  return static_cast<double>(sequences) * seq_len * (6.0 * matrices + attention);
}

}  // namespace

double model_flops(const ModelSpec& model, std::int64_t sequences) {
  const auto seq_len = static_cast<double>(model.seq_len);
  return transformer_flops(model, sequences, (seq_len + 1.0) / (2.0 * seq_len));
}

double palm_flops(const ModelSpec& model, std::int64_t sequences) { return transformer_flops(model, sequences, 1.0); }

ModelSpec read_model(const Json& json, const std::string& source, const std::string& pointer,
                     const std::filesystem::path& base_dir) {
  JsonObject object(json, source, pointer);
  ModelSpec model = published_model(object, base_dir);
  read_sizes(object, model);
  model.gated_mlp = object.boolean("gated_mlp", model.gated_mlp);
  model.tied_embeddings = object.boolean("tied_embeddings", model.tied_embeddings);
  model.positions = read_word(object, "positions", kPositionWords, model.positions);
  model.norm = read_word(object, "norm", kNormWords, model.norm);
  model.attention = read_word(object, "attention", kAttentionWords, model.attention);
  model.dropout = object.number("dropout", model.dropout);
  object.finish();
  if (!(model.dropout >= 0.0 && model.dropout < 1.0)) {
    object.fail("dropout", fmt::format("{} is no probability", model.dropout), "write a number from 0 to below 1");
  }
  resolve(model);
  check_model(object, model);
  return model;
}

Json to_json(const ModelSpec& model) {
  Json json = Json::object();
  for (const Size& size : kSizes) json[size.key] = model.*size.member;
  json["gated_mlp"] = model.gated_mlp;
  json["tied_embeddings"] = model.tied_embeddings;
  json["positions"] = word_of(model.positions, kPositionWords);
  json["norm"] = word_of(model.norm, kNormWords);
  json["attention"] = word_of(model.attention, kAttentionWords);
  json["dropout"] = json_number(model.dropout);
  return json;
}

}  // namespace krigtune
