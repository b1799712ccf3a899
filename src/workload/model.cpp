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

void check_mixers(const JsonObject& object, const ModelSpec& model) {
  const auto needs = [&](const char* key, bool is_used, bool is_given) {
    if (is_used && !is_given) object.fail(key, "is missing, for the layers of this kind", "describe it");
    if (!is_used && is_given) object.fail(key, "no layers are of this kind", "count them in \"layer_kinds\"");
  };
  needs("mamba", model.layers_with(Mixer::kMamba) > 0, model.mamba.heads > 0);
  needs("delta", model.layers_with(Mixer::kDelta) > 0, model.delta.value_heads > 0);
  const MambaSpec& mamba = model.mamba;
  if (mamba.heads % mamba.groups != 0)
    object.fail("mamba", fmt::format("{} heads are not a multiple of {} groups", mamba.heads, mamba.groups),
                "fix one of them");
  const DeltaSpec& delta = model.delta;
  if (delta.value_heads > 0 && (delta.key_heads == 0 || delta.value_heads % delta.key_heads != 0))
    object.fail(
        "delta",
        fmt::format("{} heads of values are not a multiple of {} heads of keys", delta.value_heads, delta.key_heads),
        "fix one of them");
}

void check_layer_kinds(const JsonObject& object, const ModelSpec& model) {
  if (!model.is_hybrid()) return check_mixers(object, model);
  const LayerCounts& counts = model.layer_kinds;
  if (counts.sum() != model.layers)
    object.fail("layer_kinds", fmt::format("{} layers are counted, and there are {}", counts.sum(), model.layers),
                "fix one of them");
  if (counts.kinds().size() > kMostKinds)
    object.fail("layer_kinds", fmt::format("layers of {} kinds are planned at most", kMostKinds), "name fewer");
  const bool uses_experts = model.layers_with(FeedForward::kExperts) > 0;
  if (uses_experts != model.has_experts())
    object.fail("layer_kinds",
                uses_experts ? "some layers have experts, of which nothing is said" : "no layers have the experts",
                uses_experts ? "describe the \"experts\"" : "leave the \"experts\" out");
  if (model.experts.dense_layers > 0)
    object.fail("layer_kinds", "layers without experts are counted here", "leave \"dense_layers\" of \"experts\" out");
  if (model.norm_places == NormPlaces::kShared)
    object.fail("norm_places", "hybrid layers do not share their norms", "choose another");
  check_mixers(object, model);
}

void check_mtp(const JsonObject& object, const ModelSpec& model) {
  const MtpSpec& mtp = model.mtp;
  if (mtp == MtpSpec{}) return;
  if (mtp.layers == 0)
    object.fail("mtp", "no \"layers\" predict further tokens", "say how many do, or leave the block out");
  for (const LayersOfKind& of : mtp.blocks.kinds()) {
    const LayerKind& kind = of.kind;
    const bool known = (kind.mixer != Mixer::kMamba || model.mamba.heads > 0) &&
                       (kind.mixer != Mixer::kDelta || model.delta.value_heads > 0) &&
                       (kind.feed_forward != FeedForward::kExperts || model.has_experts());
    if (!known)
      object.fail("mtp", fmt::format("the model does not describe blocks with {}", to_string(kind)),
                  "name blocks of its kinds");
  }
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
  check_layer_kinds(object, model);
  check_mtp(object, model);
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
  block
      .key("latent", &ExpertSpec::latent, integer(from_to(0, 1e6)),
           "width of what the experts work on, if it is not the model's, as in Nemotron 3 Super; 0: the model's")
      .written_where_changed();
  return block;
}

Block<LayerCounts> layer_kinds_block(const char* meaning_of_all) {
  Block<LayerCounts> block(meaning_of_all);
  const auto add = [&block](const char* key, std::int64_t LayerCounts::*layers, const char* meaning) {
    block.key(key, layers, integer(from_to(0, 1e5)), meaning).written_where_changed();
  };
  add("attention_mlp", &LayerCounts::attention_mlp, "layers with attention and an MLP");
  add("mamba_mlp", &LayerCounts::mamba_mlp, "layers with Mamba-2 and an MLP");
  add("delta_mlp", &LayerCounts::delta_mlp, "layers with a gated delta rule and an MLP");
  add("mlp", &LayerCounts::mlp, "layers with an MLP alone");
  add("mamba", &LayerCounts::mamba, "layers with Mamba-2 alone");
  add("delta", &LayerCounts::delta, "layers with a gated delta rule alone");
  add("attention", &LayerCounts::attention, "layers with attention alone");
  add("experts", &LayerCounts::experts, "layers with experts alone");
  add("mamba_experts", &LayerCounts::mamba_experts, "layers with Mamba-2 and experts");
  add("delta_experts", &LayerCounts::delta_experts, "layers with a gated delta rule and experts");
  add("attention_experts", &LayerCounts::attention_experts, "layers with attention and experts");
  return block;
}

constexpr const char* kLayerKinds =
    "Layers of a hybrid model by kind, of four kinds at most, spread evenly among each other: what mixes tokens "
    "(attention, mamba, delta) and what follows it (mlp, experts), or one of these alone. Nemotron 3 Nano has "
    "{\"mamba\": 23, \"attention\": 6, \"experts\": 23}. Without it all layers have attention and an MLP, or "
    "experts";

Block<MtpSpec> mtp_block() {
  Block<MtpSpec> block(
      "Layers that predict further tokens (multi-token prediction, arXiv:2412.19437) and are trained beside the model, "
      "as DeepSeek-V3's: {\"layers\": 1}. Each has a product of twice the model's width, blocks, and the model's head "
      "once more. Models of Hugging Face leave them out; Megatron has them with --mtp-num-layers");
  block.key("layers", &MtpSpec::layers, integer(from_to(0, 1e3)), "further tokens, for each of which a layer follows")
      .no_default();
  block
      .key("repeated", &MtpSpec::repeated, boolean(),
           "one layer predicts all of them, one after the other, as in Nemotron 3 Super")
      .written_where_changed();
  block
      .block(
          "blocks", &MtpSpec::blocks,
          layer_kinds_block("Blocks of each layer by kind, as in layer_kinds; default: one of the model's last kind. "
                            "Nemotron 3 Super has {\"attention\": 1, \"experts\": 1}"))
      .written_where_changed();
  return block;
}

Block<MambaSpec> mamba_block() {
  Block<MambaSpec> block(
      "State-space layers (Mamba-2, arXiv:2405.21060), of which layer_kinds says how many there are");
  block.key("heads", &MambaSpec::heads, integer(from_to(1, 1e6)), "heads, of head_dim numbers each").no_default();
  block.key("head_dim", &MambaSpec::head_dim, integer(from_to(1, 1e6)), "width of a head");
  block.key("state", &MambaSpec::state, integer(from_to(1, 1e6)), "size of the state of each of them");
  block.key("groups", &MambaSpec::groups, integer(from_to(1, 1e6)), "groups of heads that share B and C");
  block.key("conv", &MambaSpec::conv, integer(from_to(1, 1e3)), "tokens that the causal convolution reaches over");
  block.key("chunk", &MambaSpec::chunk, integer(from_to(1, 1e6)), "tokens of a chunk of the scan");
  return block;
}

Block<DeltaSpec> delta_block() {
  Block<DeltaSpec> block(
      "Linear attention with a gated delta rule (Gated DeltaNet, arXiv:2412.06464, as in Qwen3-Next), of which "
      "layer_kinds says how many layers have it");
  block.key("key_heads", &DeltaSpec::key_heads, integer(from_to(1, 1e6)), "heads of queries and of keys").no_default();
  block.key("value_heads", &DeltaSpec::value_heads, integer(from_to(1, 1e6)), "heads of values, a multiple of these")
      .no_default();
  block.key("key_dim", &DeltaSpec::key_dim, integer(from_to(1, 1e6)), "width of a head of keys");
  block.key("value_dim", &DeltaSpec::value_dim, integer(from_to(1, 1e6)), "width of a head of values");
  block.key("conv", &DeltaSpec::conv, integer(from_to(1, 1e3)), "tokens that the causal convolution reaches over");
  block.key("chunk", &DeltaSpec::chunk, integer(from_to(1, 1e6)), "tokens of a chunk of the rule");
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

void add_hybrids(Block<ModelSpec>& block) {
  block.block("layer_kinds", &ModelSpec::layer_kinds, layer_kinds_block(kLayerKinds)).written_where_changed();
  block.block("mamba", &ModelSpec::mamba, mamba_block()).written_where_changed();
  block.block("delta", &ModelSpec::delta, delta_block()).written_where_changed();
  block.block("mtp", &ModelSpec::mtp, mtp_block()).written_where_changed();
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
  add_hybrids(block);
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

std::vector<LayersOfKind> ModelSpec::kinds() const {
  if (is_hybrid()) return layer_kinds.kinds();
  const std::int64_t dense = has_experts() ? std::min(experts.dense_layers, layers) : layers;
  std::vector<LayersOfKind> of;
  if (dense > 0) of.push_back({{Mixer::kAttention, FeedForward::kMlp}, dense});
  if (dense < layers) of.push_back({{Mixer::kAttention, FeedForward::kExperts}, layers - dense});
  return of;
}

std::int64_t ModelSpec::layers_with(Mixer mixer) const {
  if (!is_hybrid()) return mixer == Mixer::kAttention ? layers : 0;
  std::int64_t found = 0;
  for (const LayersOfKind& of : kinds()) found += of.kind.mixer == mixer ? of.layers : 0;
  return found;
}

std::int64_t ModelSpec::layers_with(FeedForward feed_forward) const {
  std::int64_t found = 0;
  for (const LayersOfKind& of : kinds()) found += of.kind.feed_forward == feed_forward ? of.layers : 0;
  return found;
}

// Each kind is spread over the places that those before it leave.
OtherLayers ModelSpec::other_layers_in(std::int64_t begin, std::int64_t end) const {
  const std::vector<LayersOfKind> of = kinds();
  const bool first = has_two_kinds_of_layers() && experts.dense_places == DensePlaces::kFirst;
  OtherLayers in{};
  std::int64_t places = layers;
  for (std::size_t kind = 0; kind + 1 < of.size(); ++kind) {
    const std::int64_t own = of[kind].layers;
    const auto before = [&](std::int64_t place) {
      return first ? std::min(place, own) : (place * own + places - 1) / places;
    };
    const std::int64_t before_end = before(end);
    const std::int64_t before_begin = before(begin);
    in.at(kind) = before_end - before_begin;
    begin -= before_begin;
    end -= before_end;
    places -= own;
  }
  return in;
}

ModelSpec with_layers_of(ModelSpec model, const LayerKind& kind, std::int64_t layers) {
  const bool is_hybrid = model.is_hybrid();
  model.layers = layers;
  model.layer_kinds = {};
  model.experts.dense_layers = 0;
  if (is_hybrid) model.layer_kinds.of(kind) = layers;
  if (kind.feed_forward == FeedForward::kExperts) return model;
  if (model.mtp_has_experts()) {
    model.experts.dense_layers = layers;
  } else {
    model.experts = {};
  }
  return model;
}

ModelSpec with_a_layer_of_each_kind(ModelSpec model) {
  const std::vector<LayersOfKind> kinds = model.kinds();
  const bool is_hybrid = model.is_hybrid();
  model.layers = static_cast<std::int64_t>(kinds.size());
  model.layer_kinds = {};
  for (const LayersOfKind& of : kinds) {
    if (is_hybrid) model.layer_kinds.of(of.kind) = 1;
  }
  model.experts.dense_layers = std::min<std::int64_t>(model.experts.dense_layers, 1);
  model.experts.dense_places = DensePlaces::kFirst;
  return model;
}

const char* ModelSpec::predicted_only() const {
  if (has_experts()) return "experts";
  if (mtp.layers > 0) return "layers that predict further tokens";
  if (layers_with(Mixer::kMamba) > 0) return "state-space layers";
  if (layers_with(Mixer::kDelta) > 0) return "layers with linear attention";
  if (is_hybrid()) return "layers with one part alone";
  if (has_latents()) return "layers with latent attention";
  if (qk_norm != QkNorm::kNone && norm == Norm::kLayerNorm) return "layer norms of queries and keys";
  return others == OtherParameters{} ? "" : "other parameters";
}

bool ModelSpec::mtp_has_experts() const {
  const std::vector<LayersOfKind> blocks = mtp.blocks.kinds();
  return mtp.layers > 0 && std::ranges::any_of(blocks, [](const LayersOfKind& of) {
           return of.kind.feed_forward == FeedForward::kExperts;
         });
}

std::int64_t ModelSpec::qk_norm_params() const {
  const std::int64_t each = has_norm_bias() ? 2 : 1;
  if (qk_norm == QkNorm::kNone) return 0;
  return each * (qk_norm == QkNorm::kHead ? 2 * head_width() : query_width() + key_width());
}

ModelSpec read_model(const Json& json, const std::string& source, const std::string& pointer,
                     const std::filesystem::path& base_dir, Caveats* caveats) {
  JsonObject object(json, source, pointer);
  ModelSpec model = published_model(object, base_dir, caveats);
  model_block().read(object, model);
  if (caveats != nullptr && model.mtp.layers > 0) std::erase(caveats->also_not_modelled, kFurtherTokens);
  return model;
}

Json to_json(const ModelSpec& model) { return model_block().written(model); }
Json model_schema() { return model_block().schema(); }

}  // namespace krigtune::workload
