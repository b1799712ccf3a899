// Parameters of a decoder-only transformer: embeddings, L blocks, a final norm, a head.
//
//   block      = Wq + Wk + Wv + Wo + MLP + n norms = h (q + 2 k) + q h + m h f + n norm + qk norm + others
//   widths     : q = heads d, k = kv_heads d,   d = h / heads if it is not given
//   latents    : h r_q + r_q q + h (r + d_rope) + r heads (d_nope + d_v) + heads d_v h + r_q + r instead of
//                h (q + 2 k) + q h, with q = heads (d_nope + d_rope); h q instead of h r_q + r_q q + r_q if r_q = 0
//   MLP        : m = 2 (up, down), gated m = 3 (gate, up, down)
//   experts    : E h (router) + E m h f_e + m h f_s instead of m h f, but in dense layers; a token uses e of the E
//                (with a latent of l: E h + 2 h l + E m l f_e + m h f_s)
//   Mamba, delta: h (in_width + inner) + small_params instead of attention (workload/layer_kinds.h)
//   norm       = 2 h (gain, bias) with layer norm, h with RMS norm;   n = 2, 4 around the branches, 1 if they share it
//   qk norm    : gains (and biases) of a head twice, or of q and k
//   biases     = (q + 2 k) + h + (m - 1) f + h per block with layer norm, none with RMS norm, unless said otherwise
//   mtp layer  = 2 h h + 3 norm + its blocks
//   embeddings = V h (+ s h learned positions) (+ V h if the head is not tied)
#include "workload/model.h"

namespace krigtune::workload {
namespace {

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

// The blocks of a model, with those of `mtp_layers` layers that predict further tokens.
class Blocks {
 public:
  Blocks(const ModelSpec& model, std::int64_t mtp_layers) : of_(model.kinds()) {
    for (const LayersOfKind& blocks : model.mtp.blocks.kinds())
      of_.push_back({blocks.kind, mtp_layers * blocks.layers});
  }

  const std::vector<LayersOfKind>& kinds() const { return of_; }
  std::int64_t count() const {
    return sum([](const LayerKind&) { return true; });
  }
  std::int64_t with(Mixer mixer) const {
    return sum([&](const LayerKind& kind) { return kind.mixer == mixer; });
  }
  std::int64_t with(FeedForward feed_forward) const {
    return sum([&](const LayerKind& kind) { return kind.feed_forward == feed_forward; });
  }

 private:
  template <class Counts>
  std::int64_t sum(const Counts& counts) const {
    std::int64_t found = 0;
    for (const LayersOfKind& of : of_) found += counts(of.kind) ? of.layers : 0;
    return found;
  }

  std::vector<LayersOfKind> of_;
};

// Returns the elements of the weight matrices of all blocks of which a token uses `experts`.
std::int64_t block_matrices(const ModelSpec& model, const Blocks& blocks, std::int64_t experts) {
  const std::int64_t mixers =
      blocks.with(Mixer::kAttention) * attention_matrices(model) +
      blocks.with(Mixer::kMamba) * model.hidden * (model.mamba.in_width() + model.mamba.inner()) +
      blocks.with(Mixer::kDelta) * model.hidden * (model.delta.in_width() + model.delta.values());
  const std::int64_t matrices = model.gated_mlp ? 3 : 2;
  const std::int64_t dense = matrices * model.hidden * model.ffn_hidden;
  const std::int64_t router = model.experts.count * model.hidden;
  const std::int64_t mixture = router + 2 * model.hidden * model.experts.latent +
                               matrices * (experts * model.expert_hidden() * model.experts.ffn_hidden +
                                           model.hidden * model.experts.shared_ffn_hidden);
  return mixers + blocks.with(FeedForward::kMlp) * dense + blocks.with(FeedForward::kExperts) * mixture;
}

// Of the products that join two norms.
std::int64_t joining_matrices(const ModelSpec& model, std::int64_t mtp_layers) {
  return mtp_layers * 2 * model.hidden * model.hidden;
}

std::int64_t mlp_biases(const ModelSpec& model, const Blocks& blocks, std::int64_t experts) {
  const auto of_mlp = [&](std::int64_t width, std::int64_t out) { return (model.gated_mlp ? 2 : 1) * width + out; };
  const std::int64_t shared = model.experts.shared_ffn_hidden;
  const std::int64_t mixture = experts * of_mlp(model.experts.ffn_hidden, model.expert_hidden()) +
                               (shared > 0 ? of_mlp(shared, model.hidden) : 0);
  return blocks.with(FeedForward::kMlp) * of_mlp(model.ffn_hidden, model.hidden) +
         blocks.with(FeedForward::kExperts) * mixture;
}

// Norms of all blocks.
std::int64_t norms_of_blocks(const ModelSpec& model, const Blocks& blocks) {
  std::int64_t norms = 0;
  for (const LayersOfKind& of : blocks.kinds()) {
    const std::int64_t branches = of.kind.is_single() || model.norm_places == NormPlaces::kShared ? 1 : 2;
    norms += of.layers * branches * (model.norm_places == NormPlaces::kSandwich ? 2 : 1);
  }
  return norms;
}

std::int64_t parameters_with(const ModelSpec& model, std::int64_t experts) {
  constexpr std::int64_t kNormsOfMtp = 3;  // of the hidden state, of the embedding, and before the head
  const std::int64_t further = model.mtp.distinct();
  const Blocks blocks(model, further);
  const std::int64_t norm = model.norm_gain ? (model.has_norm_bias() ? 2 : 1) * model.hidden : 0;
  std::int64_t attention = model.qk_norm_params() + model.latent.q_rank + model.latent.kv_rank;
  if (model.has_qkv_bias()) attention += qkv_biases(model);
  if (model.has_out_bias()) attention += model.hidden;
  const std::int64_t norms = norms_of_blocks(model, blocks) + kNormsOfMtp * further + 1;
  const std::int64_t of_blocks = blocks.count() * model.others.of_block + blocks.with(Mixer::kAttention) * attention +
                                 blocks.with(Mixer::kMamba) * model.mamba.small_params() +
                                 blocks.with(Mixer::kDelta) * model.delta.small_params();
  const std::int64_t mlp = model.has_mlp_bias() ? mlp_biases(model, blocks, experts) : 0;
  const std::int64_t table = model.vocab * model.hidden;
  const std::int64_t positions = model.positions == Positions::kLearned ? model.seq_len * model.hidden : 0;
  const std::int64_t head = model.tied_embeddings ? 0 : table;
  return block_matrices(model, blocks, experts) + joining_matrices(model, further) + mlp + of_blocks + norms * norm +
         table + positions + head + model.others.of_model;
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) { return parameters_with(model, model.experts.count); }

std::int64_t active_parameter_count(const ModelSpec& model) { return parameters_with(model, model.experts.per_token); }

namespace {

// Computes 6 P_mat + 6 L s (q + v) c per token; `causal_share` is c.
double transformer_flops(const ModelSpec& model, std::int64_t sequences, double causal_share) {
  const auto seq_len = static_cast<double>(model.seq_len);
  const Blocks blocks(model, model.mtp.layers);
  const double matrices = static_cast<double>(block_matrices(model, blocks, model.experts.per_token) +
                                              joining_matrices(model, model.mtp.layers)) +
                          static_cast<double>(model.mtp.layers + 1) * static_cast<double>(model.vocab * model.hidden);
  const auto widths = static_cast<double>(model.query_width() + model.output_width());
  const auto with_attention = static_cast<double>(blocks.with(Mixer::kAttention));
  const double attention = 6.0 * with_attention * seq_len * widths * causal_share;
  constexpr double kFlopsOfState = 7.0;
  const auto states = static_cast<double>(blocks.with(Mixer::kMamba) * model.mamba.state_elems() +
                                          blocks.with(Mixer::kDelta) * model.delta.state_elems());
  return static_cast<double>(sequences) * seq_len * (6.0 * matrices + attention + 3.0 * kFlopsOfState * states);
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
  const double heads = 6.0 * static_cast<double>(model.mtp.layers + 1) *
                       static_cast<double>(model.vocab * model.hidden) * static_cast<double>(sequences) *
                       static_cast<double>(model.seq_len);
  return kForwardShare * (palm_flops(model, sequences) - heads);
}

}  // namespace krigtune::workload
