#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/layer_kinds.h"

namespace krigtune::workload {

enum class Positions { kLearned, kRotary };
enum class Norm { kLayerNorm, kRmsNorm };
/// Which norms a block has beside its two branches, attention and MLP.
enum class NormPlaces {
  kPre,       ///< one before each branch (GPT-2, Llama)
  kPost,      ///< one after each, of what is added to the residual stream (OLMo 2)
  kSandwich,  ///< both (Gemma 2)
  kShared     ///< one before both, which compute side by side (GPT-J, Falcon, Cohere)
};
/// Norms of queries and of keys, before their positions.
enum class QkNorm {
  kNone,
  kHead,  ///< of each head, with one gain for all heads (Qwen3)
  kFull   ///< of all heads together (OLMo 2)
};
/// Flash attention keeps the log-sum-exp of its scores (Dao et al. 2022); eager attention keeps all probabilities.
enum class Attention { kFlash, kEager };

/// Where the layers without experts are, in a model that has experts in the others.
enum class DensePlaces {
  kFirst,  ///< before all others (DeepSeek-V2 and V3)
  kSpread  ///< evenly among the others, from the first layer on (Llama 4 has experts in every second layer)
};

/// The experts that replace the MLP of a block: a router sends each token to `per_token` of `count` MLPs (Shazeer
/// et al. 2017, "Outrageously large neural networks"), without dropping tokens. All experts are on every rank, split
/// over the tensor ranks as an MLP is.
struct ExpertSpec {
  std::int64_t count = 0;              ///< experts of a block; 0: a dense MLP
  std::int64_t per_token = 0;          ///< experts that a token is sent to
  std::int64_t ffn_hidden = 0;         ///< width of one expert; default: the model's ffn_hidden
  std::int64_t shared_ffn_hidden = 0;  ///< width of an MLP that every token passes too; 0: none
  std::int64_t dense_layers = 0;       ///< layers that have an MLP of the model's ffn_hidden instead
  DensePlaces dense_places = DensePlaces::kFirst;
  /// Width of what experts work on, if it is not the model's: one product makes it of a block's input, another one
  /// makes the model's width of the sum (LatentMoE, Nemotron 3 Super); 0: there are none.
  std::int64_t latent = 0;

  friend bool operator==(const ExpertSpec&, const ExpertSpec&) = default;
};

/// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", arXiv:2405.04434, section 2.1): the keys and values of
/// all heads are made from one narrow vector of each token, its latent, and the queries of another one. Both have an
/// RMS norm. A head's queries and keys have a part without positions and a part with rotary ones, which all heads share
/// in the keys. The heads' values may be narrower than their keys.
struct LatentSpec {
  std::int64_t q_rank = 0;     ///< width of the queries' latent; 0: queries are made of the block's input
  std::int64_t kv_rank = 0;    ///< width of the latent of keys and values; 0: ordinary attention
  std::int64_t nope_dim = 0;   ///< of a head's queries and keys, the part without positions
  std::int64_t rope_dim = 0;   ///< the part with rotary positions
  std::int64_t value_dim = 0;  ///< width of a head's values

  friend bool operator==(const LatentSpec&, const LatentSpec&) = default;
};

/// Layers that predict further tokens (DeepSeek-AI 2024, "DeepSeek-V3", arXiv:2412.19437, section 2.2: multi-token
/// prediction, MTP), which are trained beside the model and which Hugging Face's models leave out. The d-th one joins
/// norms of the hidden state before it and of the embedding of the next token by a product from twice the model's
/// width, passes them through blocks, and has a norm; the model's head and a loss follow it. Token table and head are
/// the model's own.
struct MtpSpec {
  std::int64_t layers = 0;  ///< further tokens; 0: there are none
  bool repeated = false;    ///< one layer predicts all of them, one after the other (Nemotron 3 Super)
  LayerCounts blocks = {};  ///< of each layer; default: one of the model's last kind

  /// Layers with parameters of their own.
  std::int64_t distinct() const { return repeated ? std::min<std::int64_t>(layers, 1) : layers; }
  friend bool operator==(const MtpSpec&, const MtpSpec&) = default;
};

/// Parameters of small parts that nothing else describes, such as attention sinks, biases of a router or of the head,
/// or a norm of the embeddings. They are held, reduced and updated as all parameters are, and cost no other time.
struct OtherParameters {
  std::int64_t of_block = 0;  ///< elements in each block
  std::int64_t of_model = 0;  ///< elements outside of the blocks

  friend bool operator==(const OtherParameters&, const OtherParameters&) = default;
};

/// Sizes of a decoder-only transformer. The defaults are those of the session file; 0 means "derived" only before
/// `resolve`.
struct ModelSpec {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    ///< default: heads
  std::int64_t head_dim = 0;    ///< width of a head; 0: hidden / heads
  std::int64_t ffn_hidden = 0;  ///< default: 4 hidden
  std::int64_t vocab = 0;
  std::int64_t seq_len = 0;
  bool gated_mlp = false;
  bool tied_embeddings = true;
  Positions positions = Positions::kLearned;
  Norm norm = Norm::kLayerNorm;
  Attention attention = Attention::kFlash;
  double dropout = 0.0;  ///< probability: for the embedding, both branches of a block, and attention's probabilities
  ExpertSpec experts = {};
  /// Biases of the products that make queries, keys and values (of latent attention: that make the latents), of
  /// attention's output, and of the MLP. Empty: with layer norm (GPT-2) yes, with RMS norm (Llama) no.
  std::optional<bool> qkv_bias = {}, out_bias = {}, mlp_bias = {};

  NormPlaces norm_places = NormPlaces::kPre;
  QkNorm qk_norm = QkNorm::kNone;
  bool norm_bias = true;  ///< of layer norms; RMS norms have none
  OtherParameters others = {};
  LatentSpec latent = {};
  bool norm_gain = true;  ///< otherwise norms have neither gain nor bias, but for those of `qk_norm` and of latents
  LayerCounts layer_kinds = {};
  MambaSpec mamba = {};
  DeltaSpec delta = {};
  MtpSpec mtp = {};

  bool has_latents() const { return latent.kv_rank > 0; }
  bool has_experts() const { return experts.count > 0; }
  bool mtp_has_experts() const;
  /// Returns whether the layers are counted by kind, so that some have no attention.
  bool is_hybrid() const { return layer_kinds != LayerCounts{}; }
  /// Returns the kinds of layers that there are, kMostKinds at most, in a fixed order. Those with experts come last.
  std::vector<LayersOfKind> kinds() const;
  std::int64_t layers_with(Mixer mixer) const;
  std::int64_t layers_with(FeedForward feed_forward) const;
  std::int64_t dense_layers() const { return layers_with(FeedForward::kMlp); }
  /// Returns whether all layers have attention, and some have experts and others have none.
  bool has_two_kinds_of_layers() const { return !is_hybrid() && kinds().size() > 1; }
  /// Returns how many of the layers [begin, end) are of each kind but the last one.
  OtherLayers other_layers_in(std::int64_t begin, std::int64_t end) const;
  /// Width of what the experts work on.
  std::int64_t expert_hidden() const { return experts.latent > 0 ? experts.latent : hidden; }
  bool has_norm_bias() const { return norm == Norm::kLayerNorm && norm_bias && norm_gain; }
  /// What krigtune-bench cannot train of it, which predictions have: "experts"; empty if it trains all.
  const char* predicted_only() const;
  /// Gain (and bias) of the norms of queries and of keys, together; 0 if there are none.
  std::int64_t qk_norm_params() const;
  /// Of a head's queries and of its keys.
  std::int64_t head_width() const {
    if (has_latents()) return latent.nope_dim + latent.rope_dim;
    return head_dim > 0 ? head_dim : hidden / heads;
  }
  std::int64_t value_head_width() const { return has_latents() ? latent.value_dim : head_width(); }
  std::int64_t query_width() const { return heads * head_width(); }           ///< of all query heads
  std::int64_t key_width() const { return kv_heads * head_width(); }          ///< of all key heads
  std::int64_t value_width() const { return kv_heads * value_head_width(); }  ///< of all value heads
  std::int64_t output_width() const { return heads * value_head_width(); }    ///< of attention's output, of all heads
  bool has_qkv_bias() const { return qkv_bias.value_or(norm == Norm::kLayerNorm); }
  bool has_out_bias() const { return out_bias.value_or(norm == Norm::kLayerNorm); }
  bool has_mlp_bias() const { return mlp_bias.value_or(norm == Norm::kLayerNorm); }

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// What predictions of a model take for granted, and what they do not know of it; phrases without a full stop.
struct Caveats {
  std::vector<std::string> assumed;       ///< "vocabulary of 50304: that of GPT2BPETokenizer"
  std::vector<std::string> not_modelled;  ///< with the effect: "8 experts in a layer: more memory"
  /// The same for what changes time, or memory only within the bounds that predictions have anyway. Configurations are
  /// still excluded because of their memory.
  std::vector<std::string> also_not_modelled;
};

/// Adds a caveat to a list that does not have it yet.
void add_once(const std::string& caveat, std::vector<std::string>& list);

/// Returns the model with as few layers as have all of its kinds: one of each, in the order of ModelSpec::kinds.
ModelSpec with_a_layer_of_each_kind(ModelSpec model);
/// Returns the model with so many layers, all of one of its kinds.
ModelSpec with_layers_of(ModelSpec model, const LayerKind& kind, std::int64_t layers);

/// Returns the exact number of trainable parameters (elements).
std::int64_t parameter_count(const ModelSpec& model);
/// Returns the parameters that a token uses: of the experts, those that it is sent to.
std::int64_t active_parameter_count(const ModelSpec& model);

/// Returns the model FLOPs of one optimizer step over `sequences` sequences, forward and backward, with exact causal
/// attention and free embedding look-ups. Per token they are
///
///   6 P_mat + 6 L s (q + v) c,   c = (s + 1) / (2 s)
///
/// where P_mat counts the matrix parameters that a token uses, including the head (Narayanan et al. 2021, eq. 3, with
/// the causal half counted), L the layers with attention, q is the width of the queries of all heads and v that of
/// their outputs. Without latent attention both are the width h of all heads, and the second term is 12 L s h c.
/// State-space layers and linear attention add 3 * 7 for each number of their states and each token: its decay, two
/// for what is added, two for what is read, as Megatron's count of FLOPs has it for Mamba. Layers that predict further
/// tokens (MtpSpec) count as their blocks do, with their products and the head once more for each.
double model_flops(const ModelSpec& model, std::int64_t sequences);

/// Returns the same count with c = 1, as if every token attended to every other one: the convention of PaLM, Megatron
/// and Korthikanti et al.
double palm_flops(const ModelSpec& model, std::int64_t sequences);

/// Returns attention's part of palm_flops, 6 L s (q + v) per token. The rest, 6 P_mat per token, belongs to the
/// parameters.
double palm_attention_flops(const ModelSpec& model, std::int64_t sequences);
/// Returns the FLOPs of the forward pass of all blocks, with attention counted as in palm_flops: what full
/// recomputation computes a second time, and of layers that predict further tokens. The head is not recomputed.
double forward_block_flops(const ModelSpec& model, std::int64_t sequences);

/// Returns the sizes of a published model, e.g. "gpt2-124m", "llama-7b", "Qwen/Qwen2.5-7B". Throws UserError with the
/// nearest name.
ModelSpec model_preset(const std::string& name);
std::vector<std::string> model_preset_names();

/// Reads {"layers": ...}, {"preset": name, overrides...} or {"hf_config": path or object, overrides...}; paths are
/// relative to `base_dir`. With `caveats` a published model need not be of a type that is planned exactly. Throws
/// UserError with the JSON pointer.
ModelSpec read_model(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                     const std::filesystem::path& base_dir = {}, Caveats* caveats = nullptr);
nlohmann::ordered_json to_json(const ModelSpec& model);
nlohmann::ordered_json model_schema();  ///< JSON Schema of the block

}  // namespace krigtune::workload
