// Parts of published models that no key of their config.json names: modeling_*.py of huggingface/transformers 5.24.
#include "workload/hf_other_parameters.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/text.h"
#include "workload/model_shapes.h"

namespace krigtune::workload {
namespace {

// Models whose head has a bias.
constexpr std::array kHeadBias = std::to_array<std::string_view>({"phi", "gptj", "codegen", "ctrl", "xlm"});
// Models with routers whose biases are parameters.
constexpr std::array kRouterBias = std::to_array<std::string_view>({"ernie4_5_moe", "afmoe", "laguna"});
// Models with a number for each head that joins the sum of attention's exponentials, or with such biases of its gates.
constexpr std::array kNumberOfHeads =
    std::to_array<std::string_view>({"granite_swa", "granitemoe_swa", "gpt_oss", "flint", "beam"});
// Models with a gate of attention's output as wide as it.
constexpr std::array kOutputGate = std::to_array<std::string_view>({"afmoe", "beam"});
// The first two positions, of padding, belong to no token.
constexpr std::array kTwoMorePositions =
    std::to_array<std::string_view>({"opt", "biogpt", "bart", "mbart", "mvp", "plbart", "trocr"});
// Models with a norm of the embeddings beside the last one.
constexpr std::array kEmbeddingNorm = std::to_array<std::string_view>({"bloom", "mbart"});
constexpr std::array kBertLike = std::to_array<std::string_view>(
    {"bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "ernie", "megatron-bert", "roberta",
     "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta", "xlm-roberta-xl", "xmod"});

// Embeddings of token types, and the head of a masked language model: a layer, a norm, and a bias of each token.
OtherParameters of_encoder(const std::string& type, HfKeys& keys, const ModelSpec& model) {
  OtherParameters to;
  to.of_model = model.vocab;
  if (type == "bert-generation") return to;
  const std::int64_t h = model.hidden;
  to.of_model += encoder_head(h) + keys.size_or("type_vocab_size", 2) * h;
  const bool has_both_norms = type == "roberta-prelayernorm";  // of the embeddings, and of the last block
  if (has_both_norms) to.of_model += 2 * h;
  if (type == "roformer") to.of_model += keys.size_or("max_position_embeddings", 0) * model.head_width();
  if (type == "big_bird") to.of_model += h * (h + 1);  // a pooler
  if (type == "roc_bert") {
    const std::int64_t sounds = keys.size_or("pronunciation_embed_dim", 768);
    const std::int64_t shapes = keys.size_or("shape_embed_dim", 512);
    to.of_model += keys.size_or("pronunciation_vocab_size", 910) * sounds +
                   keys.size_or("shape_vocab_size", 24858) * shapes + h * (h + sounds + shapes + 1);
  }
  if (type == "xmod") {  // an adapter for each language
    const std::int64_t narrow = h / keys.size_or("adapter_reduction_factor", 2);
    to.of_block += keys.length_of("languages") * (2 * h * narrow + narrow + h);
  }
  return to;
}

// The index that chooses the tokens which latent attention attends to (DeepSeek-V3.2: "lightning indexer").
std::int64_t index_of_attention(HfKeys& keys, const ModelSpec& model) {
  const std::int64_t heads = keys.size_or("index_n_heads", 0);
  const std::int64_t width = keys.size_or("index_head_dim", 0);
  if (heads == 0 || width == 0 || !model.has_latents()) return 0;
  return model.latent.q_rank * heads * width + model.hidden * (width + heads) + 2 * width;
}

// The second attention of a decoder beside an encoder, and its norm.
std::int64_t attention_to_encoder(const std::string& type, const ModelSpec& model) {
  const std::int64_t h = model.hidden;
  const bool has_bias = model.has_qkv_bias();
  const std::int64_t attention = 4 * h * h + (has_bias ? 4 * h : 0) + 2 * h;
  return type == "whisper" ? attention - 2 * h : attention;  // no bias of keys, here and in the block itself
}

// Queries, keys, values and output of planned attention, with their norms: what a block has that has nothing else.
std::int64_t planned_attention(const ModelSpec& model) {
  ModelSpec attention = model;
  attention.layers = 1;
  attention.layer_kinds = {};
  attention.vocab = attention.ffn_hidden = 0;
  attention.experts = {};
  attention.others = {};
  attention.norm_gain = false;
  attention.qkv_bias = attention.out_bias = attention.mlp_bias = false;
  return parameter_count(attention);
}

// Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464) as Qwen3-Next has it, in layers of "linear_attention": what makes
// queries, keys, values and a gate, two numbers a head, a convolution, a norm and the output. Its other layers have a
// gate as wide as attention's output.
std::int64_t of_delta_layers(const std::string& type, HfKeys& keys, const ModelSpec& model) {
  const std::int64_t heads = keys.size_or("linear_num_value_heads", 0);
  const std::int64_t head = keys.size_or("linear_value_head_dim", 0);
  const std::int64_t of_keys = keys.size_or("linear_num_key_heads", 0) * keys.size_or("linear_key_head_dim", 0);
  const std::int64_t of_values = heads * head;
  const std::int64_t mixer = model.hidden * (2 * of_keys + 3 * of_values + 2 * heads) +
                             keys.size_or("linear_conv_kernel_dim", 4) * (2 * of_keys + of_values) + 2 * heads + head;
  const std::int64_t linear = keys.length_of("layer_types", "linear_attention");
  const std::int64_t gate = type.starts_with("qwen3") ? model.hidden * model.output_width() : 0;
  if (model.is_hybrid()) return model.layers_with(Mixer::kAttention) * gate;  // what is planned has the rest
  return linear * (mixer - planned_attention(model)) + (model.layers - linear) * gate;
}

// Kimi Delta Attention (arXiv:2510.26692): the same with a forget gate for each channel, and both gates of low rank,
// but in Ling's hybrids (bailing), whose other layers have a gate for each head.
std::int64_t of_kimi_layers(const std::string& type, HfKeys& keys, const ModelSpec& model) {
  const std::int64_t heads = keys.size_or("linear_num_heads", 0);
  const std::int64_t head = keys.size_or("linear_head_dim", 0);
  const std::int64_t width = heads * head;
  const std::int64_t h = model.hidden;
  const bool is_low = type != "bailing_hybrid";
  const std::int64_t gate = is_low ? head * (h + width) : h * width;
  const std::int64_t mixer =
      h * (4 * width + heads) + 2 * gate + 3 * width * keys.size_or("linear_conv_kernel_dim", 4) + width + heads + head;
  const std::int64_t linear = keys.length_of("layer_types", "linear_attention");
  return linear * (mixer - planned_attention(model)) + (is_low ? 0 : (model.layers - linear) * h * model.heads);
}

// Lightning attention (MiniMax-01, arXiv:2501.08313): queries, keys and values of all heads, their norm, a gate.
std::int64_t of_lightning_layers(HfKeys& keys, const ModelSpec& model) {
  const std::int64_t width = model.query_width();
  const std::int64_t mixer = 5 * model.hidden * width + width;
  return keys.length_of("layer_types", "linear_attention") * (mixer - planned_attention(model));
}

// All layers together have so many more parameters than planned ones; 0 if they have fewer.
std::int64_t of_mixers(const std::string& type, HfKeys& keys, const ModelSpec& model) {
  std::int64_t more = 0;
  if (keys.size({"linear_num_value_heads"})) more = of_delta_layers(type, keys, model);
  if (keys.size({"linear_num_heads"})) more = of_kimi_layers(type, keys, model);
  if (type == "minimax") more = of_lightning_layers(keys, model);
  return std::max<std::int64_t>(more, 0);
}

// LongCat-Flash: a second attention in each layer, with its norms, and experts that do nothing, to which tokens are
// routed as to others.
std::int64_t of_longcat_block(HfKeys& keys, const ModelSpec& model) {
  return planned_attention(model) + (2 + keys.size_or("zero_expert_num", 0)) * model.hidden;
}

void add_by_family(const std::string& type, HfKeys& keys, const ModelSpec& model, OtherParameters& to) {
  const std::int64_t h = model.hidden;
  const std::int64_t layers_of_experts = model.layers_with(FeedForward::kExperts);
  if (type == "gpt_neox_japanese") to.of_model += h;  // the last block's only bias
  if (type == "gpt_oss") to.of_block += model.experts.count;
  if (is_one_of(type, kRouterBias)) to.of_model += model.experts.count * layers_of_experts;
  if (type == "laguna") to.of_block += h * model.heads;  // a gate of attention's output, one number a head
  if (type == "modernbert-decoder") to.of_model += h * (h + 1) + model.vocab;
  if (type == "qwen2_moe" || type == "qwen3_next" || type.starts_with("qwen3_5_moe"))
    to.of_block += h;  // gate of the shared expert
  if (type == "diffllama") to.of_block += 4 * model.head_width();
  if (type == "doge") to.of_block += model.kv_heads * (model.key_width() + 1) + 2 * h;  // masks, residuals
  if (type.starts_with("apertus")) to.of_block += 2;
  if (type == "bitnet") to.of_block += h + model.ffn_hidden;
  if (type == "axk1") to.of_model += h * layers_of_experts;  // norms of the experts' outputs
  if (type == "moshi") to.of_model += h;                     // one more token
  if (type == "longcat_flash") to.of_block += of_longcat_block(keys, model);
  if (type == "mllama_text_model") {  // gates and norms of the layers that attend to an image, and more tokens
    constexpr std::int64_t kTokensOfImages = 8;
    to.of_model += keys.length_of("cross_attention_layers") * (2 + 2 * model.head_width()) + kTokensOfImages * h;
  }
  if (type == "xlnet") {  // positions relative to each other; it has no last norm
    to.of_block += h * h + 5 * h;
    to.of_model += h + model.vocab - 2 * h;
  }
}

}  // namespace

bool is_bert_like(const std::string& type) { return is_one_of(type, kBertLike); }

OtherParameters other_parameters(const std::string& type, HfKeys& keys, const ModelSpec& model) {
  if (is_bert_like(type)) return of_encoder(type, keys, model);
  OtherParameters to;
  if (is_one_of(type, kHeadBias) || keys.is_set("lm_head_bias")) to.of_model += model.vocab;
  if (is_one_of(type, kEmbeddingNorm)) to.of_model += 2 * model.hidden;
  if (is_one_of(type, kTwoMorePositions)) to.of_model += 2 * model.hidden;
  if (is_one_of(type, kNumberOfHeads)) to.of_block += model.heads;
  if (is_one_of(type, kOutputGate)) to.of_block += model.hidden * model.output_width();
  if (keys.size({"decoder_layers"})) to.of_block += attention_to_encoder(type, model);
  to.of_block += index_of_attention(keys, model);
  add_by_family(type, keys, model, to);
  const std::int64_t mixers = of_mixers(type, keys, model);
  to.of_block += mixers / model.layers;
  to.of_model += mixers % model.layers;
  return to;
}

}  // namespace krigtune::workload
