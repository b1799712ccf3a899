// Parameters of a decoder-only transformer: embeddings, L blocks, a final norm, a head.
//
//   block      = Wq + Wk + Wv + Wo + MLP + n norms = h (q + 2 k) + q h + m h f + n norm + qk norm + others
//   widths     : q = heads d, k = kv_heads d,   d = h / heads if it is not given
//   latents    : h r_q + r_q q + h (r + d_rope) + r heads (d_nope + d_v) + heads d_v h + r_q + r instead of
//                h (q + 2 k) + q h, with q = heads (d_nope + d_rope); h q instead of h r_q + r_q q + r_q if r_q = 0
//   MLP        : m = 2 (up, down), gated m = 3 (gate, up, down)
//   experts    : E h (router) + E m h f_e + m h f_s instead of m h f, but in dense layers; a token uses e of the E
//   norm       = 2 h (gain, bias) with layer norm, h with RMS norm;   n = 2, 4 around the branches, 1 if they share it
//   qk norm    : gains (and biases) of a head twice, or of q and k
//   biases     = (q + 2 k) + h + (m - 1) f + h per block with layer norm, none with RMS norm, unless said otherwise
//   embeddings = V h (+ s h learned positions) (+ V h if the head is not tied)
#include "workload/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"
#include "workload/hf_config.h"
#include "workload/hub_models.h"
#include "workload/model_presets.h"

namespace krigtune::workload {
namespace {

constexpr EnumWords<Positions, 2> kPositionWords = {{{"learned", Positions::kLearned}, {"rotary", Positions::kRotary}}};
constexpr EnumWords<Norm, 2> kNormWords = {{{"layernorm", Norm::kLayerNorm}, {"rmsnorm", Norm::kRmsNorm}}};
constexpr EnumWords<NormPlaces, 4> kNormPlaceWords = {{{"pre", NormPlaces::kPre},
                                                       {"post", NormPlaces::kPost},
                                                       {"sandwich", NormPlaces::kSandwich},
                                                       {"shared", NormPlaces::kShared}}};
constexpr EnumWords<DensePlaces, 2> kDensePlaceWords = {
    {{"first", DensePlaces::kFirst}, {"spread", DensePlaces::kSpread}}};
constexpr EnumWords<QkNorm, 3> kQkNormWords = {
    {{"none", QkNorm::kNone}, {"head", QkNorm::kHead}, {"full", QkNorm::kFull}}};

std::int64_t attention_matrices(const ModelSpec& model) {
  const std::int64_t output = model.output_width() * model.hidden;
  if (!model.has_latents())
    return model.hidden * (model.query_width() + model.key_width() + model.value_width()) + output;
  const LatentSpec& latent = model.latent;
  const std::int64_t queries =
      latent.q_rank > 0 ? latent.q_rank * (model.hidden + model.query_width()) : model.hidden * model.query_width();
  const std::int64_t of_heads = model.heads * (latent.nope_dim + latent.value_dim);
  return queries + model.hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank * of_heads + output;
}

// Of the products that make the latents, or queries, keys and values.
std::int64_t qkv_biases(const ModelSpec& model) {
  const LatentSpec& latent = model.latent;
  if (model.has_latents()) return latent.q_rank + latent.kv_rank + latent.rope_dim;
  return model.query_width() + model.key_width() + model.value_width();
}

// Returns the elements of the weight matrices of all blocks of which a token uses `experts`.
std::int64_t block_matrices(const ModelSpec& model, std::int64_t experts) {
  const std::int64_t attention = attention_matrices(model);
  const std::int64_t of_a_column = (model.gated_mlp ? 3 : 2) * model.hidden;
  const std::int64_t dense = of_a_column * model.ffn_hidden;
  const std::int64_t router = model.experts.count * model.hidden;
  const std::int64_t mixture =
      router + of_a_column * (experts * model.experts.ffn_hidden + model.experts.shared_ffn_hidden);
  return model.layers * attention + model.dense_layers() * dense + (model.layers - model.dense_layers()) * mixture;
}

std::int64_t mlp_biases(const ModelSpec& model, std::int64_t experts) {
  const auto of_mlp = [&](std::int64_t width) { return (model.gated_mlp ? 2 : 1) * width + model.hidden; };
  const std::int64_t shared = model.experts.shared_ffn_hidden;
  const std::int64_t mixture = experts * of_mlp(model.experts.ffn_hidden) + (shared > 0 ? of_mlp(shared) : 0);
  return model.dense_layers() * of_mlp(model.ffn_hidden) + (model.layers - model.dense_layers()) * mixture;
}

std::int64_t norms_of_block(const ModelSpec& model) {
  if (model.norm_places == NormPlaces::kShared) return 1;
  return model.norm_places == NormPlaces::kSandwich ? 4 : 2;
}

std::int64_t parameters_with(const ModelSpec& model, std::int64_t experts) {
  const std::int64_t norm = model.norm_gain ? (model.has_norm_bias() ? 2 : 1) * model.hidden : 0;
  const std::int64_t latent_norms = model.latent.q_rank + model.latent.kv_rank;
  std::int64_t block = norms_of_block(model) * norm + model.qk_norm_params() + latent_norms + model.others.of_block;
  if (model.has_qkv_bias()) block += qkv_biases(model);
  if (model.has_out_bias()) block += model.hidden;
  const std::int64_t mlp = model.has_mlp_bias() ? mlp_biases(model, experts) : 0;
  const std::int64_t table = model.vocab * model.hidden;
  const std::int64_t positions = model.positions == Positions::kLearned ? model.seq_len * model.hidden : 0;
  const std::int64_t head = model.tied_embeddings ? 0 : table;
  return block_matrices(model, experts) + mlp + model.layers * block + norm + table + positions + head +
         model.others.of_model;
}

constexpr EnumWords<Attention, 2> kAttentionWords = {{{"flash", Attention::kFlash}, {"eager", Attention::kEager}}};

ModelSpec hf_model(JsonObject& object, const Json& config, const std::filesystem::path& base_dir, Caveats* caveats) {
  HfOverrides overrides;
  overrides.dropout = object.has("dropout");
  overrides.seq_len = object.optional_integer("seq_len");
  if (!config.is_string())
    return read_hf_config(config, object.source(), object.pointer("hf_config"), overrides, caveats);
  const std::filesystem::path file = base_dir / config.get<std::string>();
  return read_hf_config(load_json(file), file.string(), "", overrides, caveats);
}

// Reads a published model; sizes beside its name override it.
ModelSpec published_model(JsonObject& object, const std::filesystem::path& base_dir, Caveats* caveats) {
  const Json* config = object.find("hf_config");
  const std::string preset = object.text("preset", "");
  if (!object.has("preset")) return config == nullptr ? ModelSpec{} : hf_model(object, *config, base_dir, caveats);
  if (config != nullptr) object.fail("hf_config", "there is a \"preset\" too", "remove one of them");
  if (const auto found = caveats != nullptr && !is_preset(preset) ? hub_model(preset) : std::nullopt) {
    caveats->assumed = found->caveats.assumed;
    caveats->not_modelled = found->caveats.not_modelled;
    caveats->also_not_modelled = found->caveats.also_not_modelled;
    return found->sizes;
  }
  return published_sizes(preset, fmt::format("{}: {}: ", object.source(), object.pointer("preset")));
}

void check_latents(const JsonObject& object, const ModelSpec& model) {
  const LatentSpec& latent = model.latent;
  if (latent == LatentSpec{}) return;
  for (const auto& [key, size] : {std::pair("kv_rank", latent.kv_rank), std::pair("nope_dim", latent.nope_dim),
                                  std::pair("rope_dim", latent.rope_dim), std::pair("value_dim", latent.value_dim)}) {
    if (size == 0)
      object.fail("latent_attention", fmt::format("\"{}\" is missing", key), "add it, or leave the block out");
  }
  if (latent.rope_dim % 2 != 0)
    object.fail("latent_attention", "rotary positions need an even \"rope_dim\"", "make it even");
  if (model.kv_heads != model.heads)
    object.fail("kv_heads", "latent attention makes keys and values for every head", "leave it out");
  if (model.head_dim != 0)
    object.fail("head_dim", "the widths of latent attention's heads are in its block", "leave it out");
  if (model.qk_norm != QkNorm::kNone)
    object.fail("qk_norm", "latent attention has norms of its latents instead", "leave it out");
}

void check_model(const JsonObject& object, const ModelSpec& model) {
  if (model.head_dim == 0 && !model.has_latents() && model.hidden % model.heads != 0) {
    object.fail("heads", fmt::format("hidden {} is not a multiple of {} heads", model.hidden, model.heads),
                "fix one of them, or give \"head_dim\"");
  }
  if (model.heads % model.kv_heads != 0) {
    object.fail("kv_heads", fmt::format("{} heads are not a multiple of {} kv_heads", model.heads, model.kv_heads),
                "fix one of them");
  }
  check_latents(object, model);
  const ExpertSpec& experts = model.experts;
  if (experts.count == 0 && experts != ExpertSpec{})
    object.fail("experts", "\"count\" is missing", "say how many experts a block has");
  if (experts.dense_layers > model.layers) {
    object.fail("experts", fmt::format("{} of {} layers have no experts", experts.dense_layers, model.layers),
                "give fewer \"dense_layers\"");
  }
  if (experts.count > 0 && (experts.per_token < 1 || experts.per_token > experts.count)) {
    object.fail("experts", fmt::format("a token is sent to {} of {} experts", experts.per_token, experts.count),
                "give \"per_token\", from 1 to \"count\"");
  }
}

Block<ExpertSpec> experts_block() {
  Block<ExpertSpec> block(
      "Experts in place of a block's MLP: {\"count\": 8, \"per_token\": 2}, and their width \"ffn_hidden\", and "
      "that of an MLP which every token passes too, \"shared_ffn_hidden\"");
  block.key("count", &ExpertSpec::count, integer(from_to(1, 1e5)), "experts of a block").no_default();
  block.key("per_token", &ExpertSpec::per_token, integer(from_to(1, 1e5)), "experts that a token is sent to")
      .no_default();
  block
      .key("ffn_hidden", &ExpertSpec::ffn_hidden, integer(from_to(1, 1e7)),
           "width of one expert (default: the model's ffn_hidden)")
      .no_default();
  block.key("shared_ffn_hidden", &ExpertSpec::shared_ffn_hidden, integer(from_to(0, 1e7)),
            "width of a further MLP that every token passes; 0: none");
  block
      .key("dense_layers", &ExpertSpec::dense_layers, integer(from_to(0, 1e5)),
           "layers that have an MLP of the model's ffn_hidden instead of experts")
      .written_where_changed();
  block
      .key("dense_places", &ExpertSpec::dense_places, one_of(kDensePlaceWords),
           "where these layers are: before all others, as in DeepSeek-V3, or spread evenly among them, as in Llama 4")
      .written_where_changed();
  return block;
}

Block<LatentSpec> latent_block() {
  Block<LatentSpec> block(
      "Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): keys and values of all heads are made from one "
      "narrow vector of each token. DeepSeek-V3 has {\"q_rank\": 1536, \"kv_rank\": 512, \"nope_dim\": 128, "
      "\"rope_dim\": 64, \"value_dim\": 128}");
  block.key("q_rank", &LatentSpec::q_rank, integer(from_to(0, 1e6)),
            "width of the vector that queries are made from; 0: they are made as in other models");
  const auto add = [&block](const char* key, std::int64_t LatentSpec::*size, const char* meaning) {
    block.key(key, size, integer(from_to(1, 1e6)), meaning).no_default();
  };
  add("kv_rank", &LatentSpec::kv_rank, "width of the vector that keys and values are made from");
  add("nope_dim", &LatentSpec::nope_dim, "width of the part of a head's queries and keys that has no positions");
  add("rope_dim", &LatentSpec::rope_dim, "width of the part that has rotary positions, which all heads' keys share");
  add("value_dim", &LatentSpec::value_dim, "width of a head's values");
  return block;
}

Block<OtherParameters> others_block() {
  Block<OtherParameters> block(
      "Parameters of small parts that no other key describes, such as attention sinks or a bias of the head: they "
      "count in memory, and their update in time");
  block.key("of_block", &OtherParameters::of_block, integer(from_to(0, 1e12)), "in each block");
  block.key("of_model", &OtherParameters::of_model, integer(from_to(0, 1e12)), "outside of the blocks");
  return block;
}

// Such a size must be given here or by a published model, or follow from another one.
Block<ModelSpec>& add_size(Block<ModelSpec>& block, const char* key, std::int64_t ModelSpec::*size, double largest,
                           const char* meaning) {
  return block.key(key, size, integer(from_to(1, largest)), meaning)
      .no_default()
      .check([key, size](JsonObject& object, const ModelSpec& model) {
        if (model.*size == 0) object.fail(key, "is missing", "add it, or name a \"preset\"");
      });
}

void add_bias(Block<ModelSpec>& block, const char* key, std::optional<bool> ModelSpec::*bias, const char* meaning) {
  block.key(key, bias, boolean(), meaning).no_default().written_where_changed();
}

void add_norms(Block<ModelSpec>& block) {
  block.key("norm", &ModelSpec::norm, one_of(kNormWords), "normalisation");
  block
      .key(
          "norm_places", &ModelSpec::norm_places, one_of(kNormPlaceWords),
          "norms of a block: before attention and MLP (pre), of their outputs (post, as in OLMo 2), both (sandwich, as "
          "in Gemma 2), or one for both (shared, as in GPT-J)")
      .written_where_changed();
  block
      .key("qk_norm", &ModelSpec::qk_norm, one_of(kQkNormWords),
           "norms of queries and keys: of each head (as in Qwen3), or of all heads together (full, as in OLMo 2)")
      .written_where_changed();
  block.key("norm_bias", &ModelSpec::norm_bias, boolean(), "biases of layer norms").written_where_changed();
  block
      .key("norm_gain", &ModelSpec::norm_gain, boolean(),
           "gains of norms (and biases with them), which OLMo's first models have not")
      .written_where_changed();
}

// The largest sizes are chosen so that the number of parameters fits into 64 bits. They are far beyond any model.
Block<ModelSpec> model_block() {
  Block<ModelSpec> block("Sizes of a decoder-only transformer; with a preset, only the sizes that differ from it");
  block.noted("preset",
              schema::either({schema::word(model_preset_names()), Json{{"type", "string"}, {"pattern", "/"}}}),
              "a published model; one of the Hugging Face hub by its whole name, as \"Qwen/Qwen2.5-7B\"");
  block.check([](JsonObject&, ModelSpec& model) { resolve(model); });
  add_size(block, "layers", &ModelSpec::layers, 1e5, "transformer blocks");
  add_size(block, "hidden", &ModelSpec::hidden, 1e6, "width of the model, a multiple of heads");
  add_size(block, "heads", &ModelSpec::heads, 1e6, "attention heads");
  add_size(block, "kv_heads", &ModelSpec::kv_heads, 1e6, "key and value heads, a divisor of heads (default: heads)");
  block.key("head_dim", &ModelSpec::head_dim, integer(from_to(1, 1e6)), "width of a head (default: hidden / heads)")
      .no_default()
      .written_where_changed();
  add_size(block, "ffn_hidden", &ModelSpec::ffn_hidden, 1e7, "width of the MLP (default: 4 hidden)");
  add_size(block, "vocab", &ModelSpec::vocab, 1e9, "tokens of the vocabulary");
  add_size(block, "seq_len", &ModelSpec::seq_len, 1e9, "tokens of a sequence");
  block.key("gated_mlp", &ModelSpec::gated_mlp, boolean(), "an MLP with a gate, as in Llama");
  block.key("tied_embeddings", &ModelSpec::tied_embeddings, boolean(),
            "the output layer shares its weights with the token embedding");
  block.key("positions", &ModelSpec::positions, one_of(kPositionWords), "position embeddings");
  add_norms(block);
  block.key("attention", &ModelSpec::attention, one_of(kAttentionWords),
            "what attention keeps for the backward pass: flash the log-sum-exp of its scores, eager all probabilities");
  block.key("dropout", &ModelSpec::dropout, number(from_to_below(0, 1)), "probability");
  add_bias(block, "qkv_bias", &ModelSpec::qkv_bias,
           "biases of queries, keys and values, or of their latents (default: with layernorm)");
  add_bias(block, "out_bias", &ModelSpec::out_bias, "a bias of attention's output (default: with layernorm)");
  add_bias(block, "mlp_bias", &ModelSpec::mlp_bias, "biases of the MLP or of the experts (default: with layernorm)");
  block.block("latent_attention", &ModelSpec::latent, latent_block()).written_where_changed();
  block.block("experts", &ModelSpec::experts, experts_block()).written_where_changed();
  block.block("others", &ModelSpec::others, others_block()).written_where_changed();
  block.noted(
      "hf_config", schema::either({schema::text(), Json{{"type", "object"}}}),
      "config.json of a model of Hugging Face transformers: the file, relative to this one, or its contents. gpt2, "
      "llama and mistral are planned exactly, and so are most other dense decoders; what a model has in addition is "
      "said and not predicted");
  block.check([](JsonObject& object, const ModelSpec& model) { check_model(object, model); });
  return block;
}

}  // namespace

void add_once(const std::string& caveat, std::vector<std::string>& list) {
  if (!is_one_of(caveat, list)) list.push_back(caveat);
}

std::int64_t ModelSpec::dense_layers_in(std::int64_t begin, std::int64_t end) const {
  if (!has_two_kinds_of_layers()) return 0;
  const std::int64_t dense = dense_layers();
  const auto before = [&](std::int64_t layer) {
    return experts.dense_places == DensePlaces::kFirst ? std::min(layer, dense) : (layer * dense + layers - 1) / layers;
  };
  return before(end) - before(begin);
}

ModelSpec with_a_layer_of_each_kind(ModelSpec model) {
  model.layers = model.has_two_kinds_of_layers() ? 2 : 1;
  model.experts.dense_layers = std::min<std::int64_t>(model.experts.dense_layers, 1);
  model.experts.dense_places = DensePlaces::kFirst;
  return model;
}

const char* ModelSpec::predicted_only() const {
  if (has_experts()) return "experts";
  if (has_latents()) return "layers with latent attention";
  if (!norm_gain) return "norms without gains";
  if (qk_norm != QkNorm::kNone) return "norms of queries and keys";
  if (norm == Norm::kLayerNorm && !norm_bias) return "layer norms without biases";
  return others == OtherParameters{} ? "" : "other parameters";
}

std::int64_t ModelSpec::qk_norm_params() const {
  const std::int64_t each = has_norm_bias() ? 2 : 1;
  if (qk_norm == QkNorm::kNone) return 0;
  return each * (qk_norm == QkNorm::kHead ? 2 * head_width() : query_width() + key_width());
}

std::int64_t parameter_count(const ModelSpec& model) { return parameters_with(model, model.experts.count); }

std::int64_t active_parameter_count(const ModelSpec& model) { return parameters_with(model, model.experts.per_token); }

namespace {

// Computes 6 P_mat + 6 L s (q + v) c per token; `causal_share` is c.
double transformer_flops(const ModelSpec& model, std::int64_t sequences, double causal_share) {
  const auto seq_len = static_cast<double>(model.seq_len);
  const double matrices = static_cast<double>(block_matrices(model, model.experts.per_token)) +
                          static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
  const auto widths = static_cast<double>(model.query_width() + model.output_width());
  const double attention = 6.0 * static_cast<double>(model.layers) * seq_len * widths * causal_share;
  return static_cast<double>(sequences) * seq_len * (6.0 * matrices + attention);
}

}  // namespace

double model_flops(const ModelSpec& model, std::int64_t sequences) {
  const auto seq_len = static_cast<double>(model.seq_len);
  return transformer_flops(model, sequences, (seq_len + 1.0) / (2.0 * seq_len));
}

double palm_flops(const ModelSpec& model, std::int64_t sequences) { return transformer_flops(model, sequences, 1.0); }

double palm_attention_flops(const ModelSpec& model, std::int64_t sequences) {
  return palm_flops(model, sequences) - transformer_flops(model, sequences, 0.0);
}

double forward_block_flops(const ModelSpec& model, std::int64_t sequences) {
  constexpr double kForwardShare = 1.0 / 3.0;  // the backward pass computes two products for each of the forward's
  const double head = 6.0 * static_cast<double>(model.vocab) * static_cast<double>(model.hidden) *
                      static_cast<double>(sequences) * static_cast<double>(model.seq_len);
  return kForwardShare * (palm_flops(model, sequences) - head);
}

ModelSpec read_model(const Json& json, const std::string& source, const std::string& pointer,
                     const std::filesystem::path& base_dir, Caveats* caveats) {
  JsonObject object(json, source, pointer);
  ModelSpec model = published_model(object, base_dir, caveats);
  model_block().read(object, model);
  return model;
}

Json to_json(const ModelSpec& model) { return model_block().written(model); }
Json model_schema() { return model_block().schema(); }

}  // namespace krigtune::workload
