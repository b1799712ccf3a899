// Reads the sizes of a model from its config.json.
#include "workload/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "workload/hf_hybrids.h"
#include "workload/hf_keys.h"
#include "workload/hf_other_parameters.h"
#include "workload/model_shapes.h"

namespace krigtune::workload {

// Keys and defaults: configuration_gpt2.py, configuration_llama.py and configuration_mistral.py of
// huggingface/transformers. Keys that change neither FLOPs nor bytes (rope_theta, rope_scaling, epsilons) are not read.
namespace {

using Names = HfKeys::Names;

// Models that differ from a Llama or a GPT of the same sizes, or from such a one with experts, by less than one per
// cent of parameters and FLOPs beside what is read, or what note_differences says: another activation, positions
// without parameters.
constexpr std::string_view kNearlyTheSame =
    "apertus apertus1p5_text arcee aria_text axk1 bailing_hybrid bamba bart bigbird_pegasus biogpt bitnet blenderbot "
    "blenderbot-small bloom codegen cohere cohere2 cohere2_moe cwm deepseek_v2 deepseek_v3 deepseek_v32 diffllama "
    "emu3 ernie4_5 ernie4_5_moe exaone exaone4 exaone_moe falcon flex_olmo flint gemma gemma2 gemma3_text glm "
    "glm4 glm4_moe glm4_moe_lite glm_moe_dsa gpt-sw3 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gpt_oss gptj "
    "granite granite_swa granitemoe granitemoehybrid granitemoe_swa granitemoeshared helium hy_v3 hyperclovax "
    "internlm2 internlm3 "
    "iquestcoder jais2 kimi_k2 kimi_linear kolibri1 lara_mini llama marian mbart mellum minicpm3 minimax "
    "minimax_m2 ministral3 mistral mixtral moshi mpt mvp nanochat nemotron_h olmo olmo2 olmo3 olmo_hybrid olmoe opt "
    "pegasus "
    "persimmon phi phi3 phimoe plbart qwen2 qwen2_moe qwen3 qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next "
    "sarvam_mla seed_oss smollm3 solar_open stablelm starcoder2 trocr vaultgemma whisper xglm xlm youtu";

// Models with biases of queries, keys and values alone, which no key says.
constexpr std::array kQkvBias = std::to_array<std::string_view>(
    {"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"});
// Models whose key attention_bias means those biases.
constexpr std::array kQkvBiasOnly = std::to_array<std::string_view>({"glm", "glm4"});
// Models with layer norms that have no other bias, which no key says.
constexpr std::array kNoBias = std::to_array<std::string_view>({"stablelm", "gpt_neox_japanese"});
// Models without biases in attention, but with biases in the MLP.
constexpr std::array kMlpBias = std::to_array<std::string_view>({"gptj", "codegen", "xlnet", "bigbird_pegasus"});
// Models with a learned table of positions, which their keys do not tell from others.
constexpr std::array kLearnedPositions =
    std::to_array<std::string_view>({"opt", "biogpt", "gpt_neo", "gpt_bigcode", "gpt-sw3", "xlm"});

// Norms that no key says: modeling_*.py of huggingface/transformers.
constexpr std::array kPostNorms = std::to_array<std::string_view>({"olmo2", "olmo3", "flex_olmo", "exaone4"});
constexpr std::array kSandwichNorms =
    std::to_array<std::string_view>({"gemma2", "gemma3", "gemma3_text", "glm4", "kolibri1", "afmoe", "beam"});
constexpr std::array kSharedNorm =
    std::to_array<std::string_view>({"cohere", "cohere2", "cohere2_moe", "phi", "gptj", "codegen"});
constexpr std::array kHeadNorms = std::to_array<std::string_view>({"qwen3",
                                                                   "qwen3_moe",
                                                                   "exaone4",
                                                                   "gemma3",
                                                                   "gemma3_text",
                                                                   "mellum",
                                                                   "apertus",
                                                                   "apertus1p5_text",
                                                                   "minimax_m3_vl_text",
                                                                   "kolibri1",
                                                                   "exaone_moe",
                                                                   "hy_v3",
                                                                   "afmoe",
                                                                   "laguna",
                                                                   "doge",
                                                                   "flint",
                                                                   "beam",
                                                                   "lara_mini",
                                                                   "qwen3_next",
                                                                   "qwen3_5_text",
                                                                   "qwen3_5_moe_text"});
constexpr std::array kFullQkNorms =
    std::to_array<std::string_view>({"olmo2", "olmo3", "olmoe", "olmo_hybrid", "flex_olmo", "minimax_m2"});
constexpr std::array kNoNormGain = std::to_array<std::string_view>({"olmo", "nanochat"});
constexpr std::array kNoNormBias = std::to_array<std::string_view>({"cohere", "cohere2", "cohere2_moe"});
// Models that name an RMS norm's epsilon, but have layer norms.
constexpr std::array kLayerNorms = std::to_array<std::string_view>({"phimoe"});
bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t behind = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (behind == words.size() || words[behind] == ' ')) return true;
  }
  return false;
}

class HfConfig {
 public:
  HfConfig(JsonObject& config, const HfOverrides& overrides, Caveats* caveats)
      : config_(config), overrides_(overrides), caveats_(caveats), keys_(config) {}

  ModelSpec read() {
    const std::string type = config_.text("model_type", "");
    if (type == "gpt2") return gpt2();
    if (type == "llama") return llama(false);
    if (type == "mistral") return llama(true);
    if (caveats_ != nullptr && !type.empty()) return other(type);
    config_.fail("model_type", type.empty() ? "is missing" : fmt::format("'{}' is not supported", type),
                 "gpt2, llama and mistral are; a dense model of another type is described by its sizes");
  }

 private:
  std::int64_t required_size(const char* key) {
    const std::optional<std::int64_t> value = config_.optional_integer(key);
    if (!value || *value < 1) config_.fail(key, "a size of 1 or more is needed", "is this the model's config.json?");
    return *value;
  }

  std::int64_t seq_len(const char* key) { return overrides_.seq_len ? *overrides_.seq_len : required_size(key); }

  // A property that the planned model does not have: an error, or a caveat with its effect.
  void differs(const char* key, const std::string& what, const std::string& fix, const std::string& effect) {
    if (caveats_ == nullptr) config_.fail(key, what, fix);
    caveats_->not_modelled.push_back(fmt::format("{}: {}", what, effect));
  }

  void check_activation(const char* key, const char* fallback, std::string_view family) {
    const std::string name = config_.text(key, fallback);
    if (name.starts_with(family)) return;
    differs(key, fmt::format("the activation '{}' is not supported", name),
            fmt::format("models of this type with {} are", family), "memory may differ");
  }

  // The model here has one dropout probability, so all of GPT-2's must be equal.
  double gpt2_dropout() {
    constexpr double kDefault = 0.1;
    const double residual = config_.number("resid_pdrop", kDefault);
    const double embedding = config_.number("embd_pdrop", kDefault);
    const double attention = config_.number("attn_pdrop", kDefault);
    if (residual == embedding && residual == attention) return residual;
    differs("resid_pdrop", "resid_pdrop, embd_pdrop and attn_pdrop differ",
            "write the one \"dropout\" to train with beside \"hf_config\"", "memory may differ a little");
    return residual;
  }

  ModelSpec gpt2() {
    ModelSpec model;
    model.layers = required_size("n_layer");
    model.hidden = required_size("n_embd");
    model.heads = required_size("n_head");
    model.vocab = required_size("vocab_size");
    model.ffn_hidden = config_.integer("n_inner", 0);  // null: four times n_embd
    if (model.ffn_hidden < 0) config_.fail("n_inner", "must be at least 1", "leave it out for four times n_embd");
    model.seq_len = seq_len("n_positions");
    model.tied_embeddings = config_.boolean("tie_word_embeddings", true);
    if (!overrides_.dropout) model.dropout = gpt2_dropout();
    check_activation("activation_function", "gelu_new", "gelu");
    return model;
  }

  // Only what differs from what the norm implies is set, so that a model's description stays short.
  static void set_bias(std::optional<bool>& bias, bool has_bias, const ModelSpec& model) {
    bias = has_bias != (model.norm == Norm::kLayerNorm) ? std::optional<bool>(has_bias) : std::nullopt;
  }

  void set_biases(ModelSpec& model, bool attention, bool mlp) const {
    set_bias(model.qkv_bias, attention, model);
    set_bias(model.out_bias, attention, model);
    set_bias(model.mlp_bias, mlp, model);
  }

  void set_head_dim(ModelSpec& model) {
    const std::optional<std::int64_t> width = config_.optional_integer("head_dim");
    if (width && *width < 1) config_.fail("head_dim", "must be at least 1", "leave it out for hidden_size / heads");
    if (width && *width * model.heads != model.hidden) model.head_dim = *width;
  }

  void check_attention(const ModelSpec& model) {
    const std::optional<std::int64_t> window = config_.optional_integer("sliding_window");
    if (window && *window < model.seq_len && config_.boolean("use_sliding_window", true)) {
      const std::string what =
          fmt::format("attention over a window ({} of {} tokens) is not supported", *window, model.seq_len);
      if (caveats_ == nullptr)
        config_.fail("sliding_window", what,
                     fmt::format("write \"seq_len\": {} or less beside \"hf_config\"", *window));
      caveats_->also_not_modelled.push_back(what + ": less time");
    }
    if (!overrides_.dropout && config_.number("attention_dropout", 0.0) != 0.0) {
      differs("attention_dropout", "a dropout of attention alone is not supported",
              "write the one \"dropout\" to train with beside \"hf_config\"", "a little more memory and time");
    }
  }

  // Llama and Mistral differ only in their defaults.
  ModelSpec llama(bool kv_heads_needed) {
    ModelSpec model = llama_like();
    model.layers = required_size("num_hidden_layers");
    model.hidden = required_size("hidden_size");
    model.heads = required_size("num_attention_heads");
    const bool has_kv_heads = kv_heads_needed || config_.has("num_key_value_heads");
    model.kv_heads = has_kv_heads ? required_size("num_key_value_heads") : model.heads;
    model.ffn_hidden = required_size("intermediate_size");
    model.vocab = required_size("vocab_size");
    model.seq_len = seq_len("max_position_embeddings");
    model.tied_embeddings = config_.boolean("tie_word_embeddings", false);
    check_activation("hidden_act", "silu", "silu");
    set_biases(model, config_.boolean("attention_bias", false), config_.boolean("mlp_bias", false));
    set_head_dim(model);
    check_attention(model);
    return model;
  }

  static ModelSpec llama_like() {
    ModelSpec model;
    model.gated_mlp = true;
    model.tied_embeddings = false;
    model.positions = Positions::kRotary;
    model.norm = Norm::kRmsNorm;
    return model;
  }

  // Any other decoder by the keys that most of them have. The language model of a multimodal one is in a block.
  ModelSpec other(const std::string& type) {
    for (const char* key : {"text_config", "llm_config", "language_config"}) {
      const Json* inner = config_.find(key);
      if (inner == nullptr || !inner->is_object()) continue;
      caveats_->not_modelled.emplace_back("parts for images or sound: more memory and time");
      JsonObject text = config_.object(key);
      ModelSpec model = HfConfig(text, overrides_, caveats_).sizes_of(text.text("model_type", type));
      if (type == "fuyu")  // patches of the image are tokens
        model.others.of_model +=
            (keys_.size_or("patch_size", 30) * keys_.size_or("patch_size", 30) * keys_.size_or("num_channels", 3) + 1) *
            model.hidden;
      return model;
    }
    return sizes_of(type);
  }

  std::int64_t needed_size(const Names& names) {
    const std::optional<std::int64_t> found = size(names);
    if (!found) {
      config_.fail(std::string(names.front()), fmt::format("is missing, in a config.json of type '{}'", type_),
                   "describe the model by its sizes");
    }
    return *found;
  }

  bool ties_embeddings(const std::string& type, bool is_like_llama) {
    if (type == "bigbird_pegasus") return false;  // whatever the key says
    const Json* tied = config_.find("tie_word_embeddings");
    if (tied != nullptr && tied->is_boolean()) return tied->get<bool>();
    return !is_like_llama || type.starts_with("gemma");
  }

  std::int64_t number_of_layers() {
    const std::int64_t listed = type_ == "nemotron_h" ? listed_layers(keys_) : 0;
    if (listed > 0) return listed;
    return needed_size({"num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"});
  }

  ModelSpec sizes_of(const std::string& type) {
    type_ = type;
    const bool is_like_llama = config_.has("rms_norm_eps") || type == "nemotron_h";
    ModelSpec model = is_like_llama ? llama_like() : ModelSpec{};
    model.layers = number_of_layers();
    model.hidden = needed_size({"hidden_size", "n_embd", "d_model", "emb_dim"});
    model.heads = needed_size(
        {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", "decoder_attention_heads"});
    model.kv_heads = size({"num_key_value_heads", "num_kv_heads"}).value_or(model.heads);
    if (config_.find("multi_query") != nullptr && config_.boolean("multi_query", false)) model.kv_heads = 1;
    const auto width =
        size({"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "dff", "d_inner", "decoder_ffn_dim"});
    model.ffn_hidden = width.value_or(size({"moe_intermediate_size"}).value_or(0));
    model.vocab = needed_size({"vocab_size"});
    model.seq_len = overrides_.seq_len ? *overrides_.seq_len
                                       : needed_size({"max_position_embeddings", "n_positions", "seq_length",
                                                      "max_sequence_length", "max_seq_len", "max_target_positions"});
    model.tied_embeddings = ties_embeddings(type, is_like_llama);
    const std::string activation = activation_name();
    if (activation.starts_with("silu") || activation.starts_with("swi") || type == "modernbert-decoder")
      model.gated_mlp = true;
    if (activation.starts_with("relu") || activation == "xielu") model.gated_mlp = type == "bitnet";
    if (type == "moshi") {  // whose key counts the gate
      model.gated_mlp = true;
      model.ffn_hidden /= 2;
    }
    set_head_dim(model);
    set_latents(model);
    fit_heads(model);
    if (is_one_of(type, kLayerNorms)) model.norm = Norm::kLayerNorm;
    set_biases_of(type, model);
    set_experts(model);
    set_hybrid(type, keys_, layers_without_experts(model.layers), model);
    set_positions(type, model);
    set_norms(type, model);
    model.others = other_parameters(type, keys_, model);
    caveats_->assumed.push_back(fmt::format("its config.json is of type {}: planned as a {} of the same sizes", type,
                                            is_like_llama ? "Llama" : "GPT"));
    note_differences(type, model);
    return model;
  }

  void set_positions(const std::string& type, ModelSpec& model) {
    const bool has_table = config_.has("n_positions") || config_.has("decoder_layers") ||
                           is_one_of(type, kLearnedPositions) || (is_bert_like(type) && type != "roformer");
    const bool is_rotary = config_.has("rotary_dim") || type == "ctrl" || !has_table;  // ALiBi has no parameters either
    if (is_rotary) model.positions = Positions::kRotary;
  }

  std::string activation_name() {
    for (const char* key : {"hidden_act", "activation_function", "hidden_activation", "activation", "mlp_hidden_act"}) {
      if (const Json* name = config_.find(key); name != nullptr && name->is_string()) return name->get<std::string>();
    }
    return "";
  }

  // Multi-head latent attention: configuration_deepseek_v2.py and its like.
  void set_latents(ModelSpec& model) {
    const LatentSpec latent{size({"q_lora_rank"}).value_or(0), size({"kv_lora_rank"}).value_or(0),
                            size({"qk_nope_head_dim"}).value_or(0), size({"qk_rope_head_dim"}).value_or(0),
                            size({"v_head_dim"}).value_or(0)};
    if (latent.kv_rank == 0) return;
    if (latent.nope_dim == 0 || latent.rope_dim == 0 || latent.value_dim == 0) {
      caveats_->also_not_modelled.emplace_back(
          "latent attention (kv_lora_rank) of unknown widths: a little more memory, and another time");
      return;
    }
    model.latent = latent;
    model.kv_heads = model.heads;
    model.head_dim = 0;
  }

  // Transformers rounds the width of a head down. The planned model has heads that share keys and values evenly.
  void fit_heads(ModelSpec& model) {
    if (model.has_latents()) return;
    if (model.head_dim == 0 && model.hidden % model.heads != 0 && model.hidden > model.heads)
      model.head_dim = model.hidden / model.heads;
    if (model.heads % model.kv_heads == 0) return;
    caveats_->not_modelled.push_back(
        fmt::format("{} heads for {} heads of keys and values: another memory and time", model.heads, model.kv_heads));
    while (model.heads % model.kv_heads != 0) --model.kv_heads;
  }

  void note_differences(const std::string& type, const ModelSpec& model) {
    std::vector<std::string>& list = caveats_->not_modelled;
    if (is_bert_like(type))
      list.emplace_back(kEncoderCaveat);
    else if (type == "longcat_flash")
      list.emplace_back("a second attention in each layer: more memory and time");
    else if (!has_word(kNearlyTheSame, type))
      list.push_back(fmt::format("what {} has that they have not: more or less of both", type));
    check_attention(model);
    note_kinds_of_layers(model);
    note_encoder();
    if (config_.has("quantization_config")) list.emplace_back("quantised weights: less memory");
  }

  void note_encoder() {
    const bool has_encoder = is_set("is_encoder_decoder") || config_.has("encoder_layers");
    if (has_encoder)
      caveats_->not_modelled.emplace_back("an encoder beside the decoder: more memory and time");
    else if (config_.has("decoder_layers"))
      caveats_->not_modelled.emplace_back("attention to an encoder: more time");
  }

  void set_biases_of(const std::string& type, ModelSpec& model) {
    const bool usual = model.norm == Norm::kLayerNorm && !is_one_of(type, kLayerNorms) && !is_one_of(type, kNoBias);
    auto all = flag({"use_bias", "bias", "add_bias_linear"});
    if (const auto none = flag({"no_bias"})) all = !*none;
    const auto attention = all ? all : flag({"attention_bias"});
    const bool is_known = is_one_of(type, kMlpBias);
    set_biases(model, !is_known && attention.value_or(usual),
               is_known || flag({"mlp_bias"}).value_or(attention.value_or(usual) && (usual || type == "gpt_oss")));
    const bool of_type = is_one_of(type, kQkvBias) || (model.has_qkv_bias() && type != "gpt_neo");
    set_bias(model.qkv_bias, flag({"qkv_bias", "use_qkv_bias"}).value_or(of_type), model);
    const bool has_out_bias = model.has_out_bias() && !is_one_of(type, kQkvBiasOnly);
    set_bias(model.out_bias, flag({"attention_out_bias"}).value_or(has_out_bias), model);
  }

  void set_norms(const std::string& type, ModelSpec& model) {
    const bool is_shared =
        is_one_of(type, kSharedNorm) || (is_set("parallel_attn") && !is_set("new_decoder_architecture"));
    if (is_one_of(type, kPostNorms)) model.norm_places = NormPlaces::kPost;
    if (is_one_of(type, kSandwichNorms) || is_set("use_post_norm")) model.norm_places = NormPlaces::kSandwich;
    if (is_shared) model.norm_places = NormPlaces::kShared;
    const bool has_gain = !type.starts_with("llama4");  // whose norms of queries and keys have no parameters
    const bool of_heads = is_one_of(type, kHeadNorms) || (is_set("use_qk_norm") && has_gain) || is_set("qk_layernorm");
    if (of_heads) model.qk_norm = QkNorm::kHead;
    const bool is_cohere = type.starts_with("cohere") && of_heads;  // each head has gains of its own
    if (is_one_of(type, kFullQkNorms) || is_cohere) model.qk_norm = QkNorm::kFull;
    const bool has_bias = flag({"norm_bias"}).value_or(!is_one_of(type, kNoNormBias) && !is_set("no_bias"));
    if (model.norm == Norm::kLayerNorm) model.norm_bias = has_bias;
    if (model.has_latents()) model.qk_norm = QkNorm::kNone;  // the latents have theirs
    model.norm_gain = !is_one_of(type, kNoNormGain);
    if (!model.norm_gain) model.norm_bias = true;  // as usual, where there is none to speak of
  }

  void set_experts(ModelSpec& model) {
    if (!flag({"is_moe"}).value_or(true)) return;
    const auto experts = size({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"});
    if (!experts || *experts < 2) {  // the shared expert is the MLP
      if (type_ == "granitemoehybrid") model.ffn_hidden = size({"shared_intermediate_size"}).value_or(model.ffn_hidden);
      return;
    }
    ExpertSpec& to = model.experts;
    to.count = *experts;
    constexpr std::int64_t kUsual = 2;
    const auto chosen =
        size({"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "num_selected_experts"});
    if (!chosen) caveats_->assumed.push_back(fmt::format("{} experts a token: its config.json does not say", kUsual));
    to.per_token = std::min(chosen.value_or(kUsual), to.count);
    to.ffn_hidden = size({"moe_intermediate_size", "expert_ffn_hidden_size"}).value_or(model.ffn_hidden);
    if (type_ == "longcat_flash") {  // two MLPs in each layer, beside the experts
      to.shared_ffn_hidden = 2 * model.ffn_hidden;
      return;
    }
    if (type_.starts_with("llama4")) {
      to.ffn_hidden = to.shared_ffn_hidden = model.ffn_hidden;
      model.ffn_hidden = size({"intermediate_size_mlp"}).value_or(model.ffn_hidden);
      return set_dense_layers(model);
    }
    const auto shared = size({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"});
    to.latent = size({"moe_latent_size"}).value_or(0);
    to.shared_ffn_hidden =
        size({"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"})
            .value_or(shared.value_or(0) * to.ffn_hidden);
    set_dense_layers(model);
  }

  // Layers that attend to a window need less time than the others, and keep as much.
  void note_kinds_of_layers(const ModelSpec& model) {
    const std::int64_t full = length_of("layer_types", "full_attention");
    const std::int64_t windows =
        length_of("layer_types", "sliding_attention") + length_of("layer_types", "chunked_attention");
    const std::int64_t indexed = length_of("layer_types", "indexed_attention");
    if (indexed > 0)
      caveats_->not_modelled.emplace_back("attention to tokens that an index chooses: another memory and time");
    const std::int64_t linear = length_of("layer_types", "linear_attention");
    if (linear > 0 && !model.is_hybrid()) {
      caveats_->not_modelled.push_back(fmt::format(
          "linear attention in {} of {} layers, planned as attention: less time and memory of long sequences", linear,
          length_of("layer_types")));
    }
    const bool attends_only = full + windows + indexed + linear == length_of("layer_types");
    if (attends_only && full > 0 && windows > 0) {
      caveats_->also_not_modelled.push_back(
          fmt::format("attention over a window in {} of {} layers: less time", windows, full + windows));
    }
    if (model.is_hybrid() && type_.starts_with("qwen3")) caveats_->also_not_modelled.emplace_back(kOutputGateCaveat);
    if (model.is_hybrid()) return;
    for (const char* key : {"layer_types", "layers_block_type", "attn_layer_period", "ssm_cfg", "mamba_d_state"}) {
      if (!config_.has(key) || (key == std::string_view("layer_types") && attends_only)) continue;
      caveats_->not_modelled.push_back(fmt::format("layers of several kinds ({}): less time and memory", key));
      return;
    }
  }

  // By any of the keys that say it; one entry a layer.
  std::vector<bool> layers_without_experts(std::int64_t layers) {
    const std::int64_t first = size({"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}).value_or(0);
    const std::int64_t step =
        size({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"}).value_or(1);
    std::vector<bool> dense;
    for (std::int64_t layer = 0; layer < layers; ++layer) dense.push_back(layer < first || (layer + 1) % step != 0);
    for (const auto& places : {keys_.numbers("mlp_only_layers"), keys_.places_of("mlp_layer_types", "dense")}) {
      for (const std::int64_t layer : places) {
        if (layer >= 0 && layer < layers) dense[static_cast<std::size_t>(layer)] = true;
      }
    }
    return dense;
  }

  void set_dense_layers(ModelSpec& model) {
    const std::vector<bool> dense = layers_without_experts(model.layers);
    model.experts.dense_layers = std::count(dense.begin(), dense.end(), true);
    if (!model.has_two_kinds_of_layers()) return;
    // Of those before any layer, as many are planned there, or one more or less.
    const auto are = [&](DensePlaces places, std::int64_t most) {
      model.experts.dense_places = places;
      std::int64_t before = 0;
      for (std::size_t layer = 0; layer < dense.size(); ++layer) {
        before += dense[layer] ? 1 : 0;
        if (std::abs(before - model.other_layers_in(0, static_cast<std::int64_t>(layer) + 1)[0]) > most) return false;
      }
      return true;
    };
    if (are(DensePlaces::kFirst, 0) || are(DensePlaces::kSpread, 1)) return;
    caveats_->also_not_modelled.push_back(
        fmt::format("{} of {} layers have an MLP instead of experts, and are planned as if they were spread evenly: "
                    "more or less memory and time of a pipeline stage",
                    model.experts.dense_layers, model.layers));
  }

  std::optional<std::int64_t> size(const Names& names) { return keys_.size(names); }
  std::optional<bool> flag(const Names& names) { return keys_.flag(names); }
  bool is_set(const char* key) { return keys_.is_set(key); }
  std::int64_t length_of(const char* key, std::string_view word = "") { return keys_.length_of(key, word); }

  JsonObject& config_;
  const HfOverrides& overrides_;
  Caveats* caveats_;
  HfKeys keys_;
  std::string type_ = {};  ///< of the file, where it is read by the keys that most have
};

}  // namespace

ModelSpec read_hf_config(const Json& json, const std::string& source, const std::string& pointer,
                         const HfOverrides& overrides, Caveats* caveats) {
  JsonObject config(json, source, pointer);
  return HfConfig(config, overrides, caveats).read();
}

}  // namespace krigtune::workload
