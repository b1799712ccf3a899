// Initial values as in GPT-2 (Radford et al. 2019; OpenAI's and nanoGPT's code): weights Normal(0, 0.02), the two
// projections into the residual stream scaled by 1 / sqrt(2 layers), biases 0, norm gains 1.
//
// Tensor parallelism as in Megatron-LM (Shoeybi et al. 2019): matrices that feed the heads and the columns of the MLP
// are split over their rows (each of q, k, v and of gate, up separately), matrices after these over their columns, the
// token table and the head over the vocabulary. Norms, positions and the biases that are added after a reduction are
// whole on every rank, and so is the router of experts, each of which is split as an MLP is.
//
// Of Mamba-2 and of a gated delta rule everything is split by heads: the parts that a product makes of a token, the
// channels of the convolution, the numbers of the heads.
//
// Of latent attention the products that make the latents are whole too, and those that make the heads are split over
// their rows by heads.
//
// Adapters start as in Hu et al. 2021: A as the other weights, B as zeros. Of an adapter the matrix that shares a split
// side with the layer's is split as it is; the other one is whole on every rank.
#include "schedule/parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace krigtune::schedule {
namespace {

constexpr double kStddev = 0.02;

class Adder {
 public:
  Adder(const workload::Workload& workload, const Knobs& knobs)
      : model_(workload.model),
        training_(workload.training),
        tensor_ranks_(knobs.tensor_ranks),
        expert_ranks_(knobs.expert_ranks),
        whole_experts_(knobs.whole_experts),
        sequence_parallel_(knobs.sequence_parallel),
        type_bytes_(size_bytes(compute_type(workload.precision))),
        granule_elems_(knobs.data_ranks * kAlignmentBytes / type_bytes_),
        residual_stddev_(kStddev / std::sqrt(2.0 * static_cast<double>(workload.model.layers))) {}

  ParameterTable table() {
    add_tensors();
    std::int64_t trained = 0;
    for (ParameterTensor& tensor : result_.tensors) {
      tensor.begin_trained_elems = trained;
      if (tensor.trained) trained += tensor.padded_elems;
    }
    return std::move(result_);
  }

 private:
  void add_tensors() {
    result_.table = vocabulary("table");
    if (model_.positions == workload::Positions::kLearned) {
      result_.positions = whole("positions", model_.seq_len * model_.hidden, 0.0, kStddev);
    }
    for (const workload::LayersOfKind& of : model_.kinds()) {
      for (std::int64_t i = 0; i < of.layers; ++i)
        result_.blocks.push_back(block(fmt::format("block{}.", result_.blocks.size()), of.kind));
    }
    result_.behind_blocks = static_cast<int>(result_.tensors.size());
    result_.final_norm = norm("final_norm");
    result_.head = model_.tied_embeddings ? result_.table : vocabulary("head.weight");
    for (std::int64_t i = 0; i < model_.mtp.distinct(); ++i) result_.mtp.push_back(mtp(fmt::format("mtp{}.", i)));
    result_.others = others("others", model_.others.of_model);
  }

  BlockTensors block(const std::string& name, const workload::LayerKind& kind) {
    const bool pre = model_.norm_places != workload::NormPlaces::kPost;
    const bool post = !pre || model_.norm_places == workload::NormPlaces::kSandwich;
    const bool mixes = kind.mixer != workload::Mixer::kNone;
    BlockTensors tensors;
    tensors.kind = kind;
    tensors.first = static_cast<int>(result_.tensors.size());
    tensors.has_experts = kind.feed_forward == workload::FeedForward::kExperts;
    if (pre && mixes) tensors.norm1 = norm(name + "norm1");
    add_mixer(name, tensors);
    if (post && mixes) tensors.post_norm1 = norm(name + "post_norm1");
    const bool feeds = kind.feed_forward != workload::FeedForward::kNone;
    if (pre && feeds && model_.norm_places != workload::NormPlaces::kShared) tensors.norm2 = norm(name + "norm2");
    if (feeds) add_mlp(name, tensors);
    if (post && feeds) tensors.post_norm2 = norm(name + "post_norm2");
    tensors.others = others(name + "others", model_.others.of_block);
    return tensors;
  }

  MtpTensors mtp(const std::string& name) {
    MtpTensors tensors;
    tensors.first = static_cast<int>(result_.tensors.size());
    tensors.embedding_norm = norm(name + "embedding_norm");
    tensors.hidden_norm = norm(name + "hidden_norm");
    tensors.join = over_rows(name + "join", {model_.hidden}, false, packs(), 2 * model_.hidden, tensor_ranks_);
    for (const workload::LayersOfKind& of : model_.mtp.blocks.kinds()) {
      for (std::int64_t i = 0; i < of.layers; ++i)
        tensors.blocks.push_back(block(fmt::format("{}block{}.", name, tensors.blocks.size()), of.kind));
    }
    tensors.final_norm = norm(name + "final_norm");
    return tensors;
  }

  void add_mixer(const std::string& name, BlockTensors& tensors) {
    switch (tensors.kind.mixer) {
      case workload::Mixer::kNone:
        return;
      case workload::Mixer::kMamba:
        return add_mamba(name, tensors);
      case workload::Mixer::kDelta:
        return add_delta(name, tensors);
      case workload::Mixer::kAttention:
        break;
    }
    if (model_.has_latents()) {
      add_latents(name, tensors.latent);
    } else {
      add_qkv(name, tensors);
    }
    tensors.out = over_columns(name + "out", model_.output_width(), model_.has_out_bias(), packs());
    adapt_columns(name, workload::AdaptedLayer::kOutput, model_.output_width(), tensors.out);
  }

  void add_mamba(const std::string& name, BlockTensors& tensors) {
    const workload::MambaSpec& mamba = model_.mamba;
    const std::int64_t inner = mamba.inner();
    const std::int64_t shared = mamba.groups * mamba.state;  // width of B, and of C
    MixerTensors& to = tensors.mixer;
    to.in = over_rows(name + "mamba_in", {inner, inner, shared, shared, mamba.heads}, false, packs());
    to.conv = by_heads(name + "conv", {inner, shared, shared}, mamba.conv + 1);
    to.heads = by_heads(name + "heads", {mamba.heads, mamba.heads, mamba.heads}, 1);
    to.norm = by_heads(name + "gated_norm", {inner}, 1);
    tensors.out = over_columns(name + "out", inner, false, packs());
  }

  void add_delta(const std::string& name, BlockTensors& tensors) {
    const workload::DeltaSpec& delta = model_.delta;
    const std::int64_t keys = delta.keys();
    const std::int64_t values = delta.values();
    MixerTensors& to = tensors.mixer;
    to.in = over_rows(name + "delta_in", {keys, keys, values, values, delta.value_heads, delta.value_heads}, false,
                      packs());
    to.conv = by_heads(name + "conv", {keys, keys, values}, delta.conv);
    to.heads = by_heads(name + "heads", {delta.value_heads, delta.value_heads}, 1);
    to.norm = add(name + "gated_norm", delta.value_dim, 1.0, 0.0, {});
    result_.partial_gradients.back() = tensor_ranks_ > 1;  // each rank computes the gradient for its own heads
    tensors.out = over_columns(name + "out", values, false, packs());
  }

  int by_heads(const std::string& name, const std::vector<std::int64_t>& rows, std::int64_t row_elems) {
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    return add(name, all / tensor_ranks_ * row_elems, 0.0, kStddev, {Split::kRows, rows, row_elems});
  }

  void add_qkv(const std::string& name, BlockTensors& tensors) {
    using Layer = workload::AdaptedLayer;
    const std::vector<std::int64_t> rows = {model_.query_width(), model_.key_width(), model_.value_width()};
    tensors.qkv = over_rows(name + "qkv", rows, model_.has_qkv_bias(), packs());
    adapt_rows(name, {Layer::kQuery, Layer::kKey, Layer::kValue}, rows, tensors.qkv);
    tensors.q_norm = qk_norm(name + "q_norm", model_.query_width());
    tensors.k_norm = qk_norm(name + "k_norm", model_.key_width());
  }

  void add_latents(const std::string& name, LatentTensors& tensors) {
    const workload::LatentSpec& latent = model_.latent;
    const bool bias = model_.has_qkv_bias();
    const std::int64_t of_heads = model_.heads * (latent.nope_dim + latent.value_dim);
    if (latent.q_rank > 0) {
      tensors.q_down = whole_matrix(name + "q_down", latent.q_rank, bias);
      tensors.q_norm = whole(name + "q_latent_norm", latent.q_rank, 1.0, 0.0);
    }
    const std::int64_t queries_of = latent.q_rank > 0 ? latent.q_rank : model_.hidden;
    tensors.q_up = over_rows(name + "q_up", {model_.query_width()}, false, packs(), queries_of, tensor_ranks_);
    tensors.kv_down = whole_matrix(name + "kv_down", latent.kv_rank + latent.rope_dim, bias);
    tensors.kv_norm = whole(name + "kv_latent_norm", latent.kv_rank, 1.0, 0.0);
    tensors.kv_up = over_rows(name + "kv_up", {of_heads}, false, packs(), latent.kv_rank, tensor_ranks_);
  }

  void add_mlp(const std::string& name, BlockTensors& tensors) {
    if (tensors.has_experts) add_experts(name, tensors);
    const std::int64_t width = tensors.has_experts ? model_.experts.shared_ffn_hidden : model_.ffn_hidden;
    if (width == 0) return;
    tensors.mlp_columns = width / tensor_ranks_;
    using Layer = workload::AdaptedLayer;
    tensors.up =
        over_rows(name + (model_.gated_mlp ? "gate_up" : "up"), up_rows(width), model_.has_mlp_bias(), packs());
    const auto ups = model_.gated_mlp ? std::vector{Layer::kGate, Layer::kUp} : std::vector{Layer::kUp};
    adapt_rows(name, ups, up_rows(width), tensors.up);
    tensors.down = over_columns(name + "down", width, model_.has_mlp_bias(), packs());
    adapt_columns(name, Layer::kDown, width, tensors.down);
  }

  // A rank has the part of its heads, or a gain for all heads, of which it computes the gradient for its own.
  int qk_norm(const std::string& name, std::int64_t width) {
    const std::int64_t each = model_.has_norm_bias() ? 2 : 1;
    if (model_.qk_norm == workload::QkNorm::kNone) return kNoTensor;
    if (model_.qk_norm == workload::QkNorm::kFull)
      return add(name, each * width / tensor_ranks_, 1.0, 0.0, {Split::kRows, std::vector(each, width), 1});
    const int index = add(name, each * model_.head_width(), 1.0, 0.0, {});
    result_.partial_gradients.back() = tensor_ranks_ > 1;
    return index;
  }

  int others(const std::string& name, std::int64_t elems) {
    return elems > 0 ? whole(name, elems, 0.0, kStddev) : kNoTensor;
  }

  // Adds adapters to those of the layers, side by side in `rows`, that have one.
  void adapt_rows(const std::string& name, const std::vector<workload::AdaptedLayer>& layers,
                  const std::vector<std::int64_t>& rows, LinearTensors& linear) {
    if (rank() > 0 && layers.size() > 1 && training_.lora.joins(layers))
      return adapt_all_rows(name, layers, rows, linear);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::int64_t own = rows[i] / tensor_ranks_;
      if (adapts(layers[i])) {
        AdapterTensors adapter{layers[i], kNoTensor, kNoTensor, rank(), begin, own};
        const std::string of = name + workload::to_string(layers[i]);
        adapter.a = shared_of_adapter(of + ".A", rank() * model_.hidden, kStddev);
        adapter.b = trained(add(of + ".B", own * rank(), 0.0, 0.0, {Split::kRows, {rows[i]}, rank()}));
        linear.adapters.push_back(adapter);
      }
      begin += own;
    }
  }

  // One adapter for all of them.
  void adapt_all_rows(const std::string& name, const std::vector<workload::AdaptedLayer>& layers,
                      const std::vector<std::int64_t>& rows, LinearTensors& linear) {
    const std::int64_t own = std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) / tensor_ranks_;
    std::string of = name;
    for (const workload::AdaptedLayer layer : layers) of += workload::to_string(layer);
    AdapterTensors adapter{layers.front(), kNoTensor, kNoTensor, rank(), 0, own};
    adapter.a = shared_of_adapter(of + ".A", rank() * model_.hidden, kStddev);
    adapter.b = trained(add(of + ".B", own * rank(), 0.0, 0.0, {Split::kRows, rows, rank()}));
    linear.adapters.push_back(adapter);
  }

  void adapt_columns(const std::string& name, workload::AdaptedLayer layer, std::int64_t columns,
                     LinearTensors& linear) {
    if (!adapts(layer)) return;
    AdapterTensors adapter{layer, kNoTensor, kNoTensor, rank(), 0, model_.hidden};
    const std::string of = name + workload::to_string(layer);
    const std::int64_t own = columns / tensor_ranks_;
    adapter.a = trained(add(of + ".A", rank() * own, 0.0, kStddev, {Split::kColumns, {rank()}, columns}));
    adapter.b = shared_of_adapter(of + ".B", model_.hidden * rank(), 0.0);
    linear.adapters.push_back(adapter);
  }

  bool adapts(workload::AdaptedLayer layer) const { return rank() > 0 && training_.lora.targets_layer(layer); }
  std::int64_t rank() const { return training_.lora.rank; }
  bool packs() const { return training_.base_bits().has_value(); }

  int matrix(int index, std::int64_t columns) {
    result_.tensors[static_cast<std::size_t>(index)].columns = columns;
    return index;
  }

  // Each tensor rank computes a part of its gradient.
  int shared_of_adapter(const std::string& name, std::int64_t elems, double stddev) {
    const int index = trained(add(name, elems, 0.0, stddev, {}));
    result_.partial_gradients.back() = tensor_ranks_ > 1;
    return index;
  }

  int trained(int index) {
    result_.tensors[static_cast<std::size_t>(index)].trained = true;
    return index;
  }

  std::vector<std::int64_t> up_rows(std::int64_t width) const {
    return model_.gated_mlp ? std::vector<std::int64_t>{width, width} : std::vector<std::int64_t>{width};
  }

  // One tensor has the matrices of all experts, one after the other.
  void add_experts(const std::string& name, BlockTensors& tensors) {
    const workload::ExpertSpec& experts = model_.experts;
    tensors.router.weight =
        matrix(whole(name + "router.weight", experts.count * model_.hidden, 0.0, kStddev), model_.hidden);
    const std::int64_t own = experts.count / expert_ranks_;
    std::vector<std::int64_t> rows;
    for (std::int64_t e = 0; e < own; ++e) {
      for (const std::int64_t part : up_rows(experts.ffn_hidden)) rows.push_back(part);
    }
    if (experts.latent > 0) add_expert_latent(name, tensors);
    const std::size_t first = result_.tensors.size();
    const std::int64_t parts = whole_experts_ ? 1 : tensor_ranks_;  // of each expert
    const bool has_bias = model_.has_mlp_bias();
    tensors.experts_up = over_rows(name + "experts_up", rows, has_bias, false, model_.expert_hidden(), parts);
    tensors.experts_down =
        over_columns(name + "experts_down", experts.ffn_hidden, has_bias, false, own * model_.expert_hidden(), parts);
    for (std::size_t t = first; t < result_.tensors.size(); ++t) {
      result_.tensors[t].of_experts = true;
      if (whole_experts_) result_.partial_gradients[t] = false;  // summed over the ranks that have the same experts
    }
    // Every rank adds the bias to its part of the sums.
    if (has_bias && !whole_experts_)
      result_.partial_gradients[static_cast<std::size_t>(tensors.experts_down.bias)] = tensor_ranks_ > 1;
    result_.tensors[static_cast<std::size_t>(tensors.experts_up.weight)].matrices = own;
    result_.tensors[static_cast<std::size_t>(tensors.experts_down.weight)].matrices = own;
  }

  // Whole on every tensor rank, which has a part of the sums that `from_latent` reads unless experts are whole too.
  void add_expert_latent(const std::string& name, BlockTensors& tensors) {
    const std::int64_t elems = model_.experts.latent * model_.hidden;
    tensors.to_latent.weight = matrix(whole(name + "to_latent.weight", elems, 0.0, kStddev), model_.hidden);
    if (!whole_experts_) result_.partial_gradients.back() = tensor_ranks_ > 1;
    tensors.from_latent.weight = matrix(whole(name + "from_latent.weight", elems, 0.0, kStddev), model_.experts.latent);
    if (!whole_experts_) result_.partial_gradients.back() = tensor_ranks_ > 1;
  }

  NormTensors norm(const std::string& name) {
    NormTensors tensors;
    tensors.is_plain = !model_.norm_gain;
    if (tensors.is_plain) return tensors;
    tensors.gain = whole(name + ".gain", model_.hidden, 1.0, 0.0);
    if (model_.has_norm_bias()) tensors.bias = whole(name + ".bias", model_.hidden, 0.0, 0.0);
    return tensors;
  }

  LinearTensors over_rows(const std::string& name, const std::vector<std::int64_t>& block_rows, bool has_bias,
                          bool packed) {
    return over_rows(name, block_rows, has_bias, packed, model_.hidden, tensor_ranks_);
  }

  // This rank's one of `parts` equal parts.
  LinearTensors over_rows(const std::string& name, const std::vector<std::int64_t>& block_rows, bool has_bias,
                          bool packed, std::int64_t columns, std::int64_t parts) {
    const std::int64_t rows = std::accumulate(block_rows.begin(), block_rows.end(), std::int64_t{0}) / parts;
    LinearTensors tensors{.packed = packed};
    tensors.weight =
        matrix(add(name + ".weight", stored(rows * columns, packed), 0.0, kStddev, {Split::kRows, block_rows, columns}),
               columns);
    if (has_bias) tensors.bias = add(name + ".bias", rows, 0.0, 0.0, {Split::kRows, block_rows, 1});
    return tensors;
  }

  // Of the block's input.
  LinearTensors whole_matrix(const std::string& name, std::int64_t rows, bool has_bias) {
    LinearTensors tensors{.packed = packs()};
    tensors.weight =
        matrix(whole(name + ".weight", stored(rows * model_.hidden, packs()), 0.0, kStddev), model_.hidden);
    if (has_bias) tensors.bias = whole(name + ".bias", rows, 0.0, 0.0);
    return tensors;
  }

  LinearTensors over_columns(const std::string& name, std::int64_t columns, bool has_bias, bool packed) {
    return over_columns(name, columns, has_bias, packed, model_.hidden, tensor_ranks_);
  }

  LinearTensors over_columns(const std::string& name, std::int64_t columns, bool has_bias, bool packed,
                             std::int64_t rows, std::int64_t parts) {
    LinearTensors tensors{.packed = packed};
    tensors.weight = matrix(add(name + ".weight", stored(rows * columns / parts, packed), 0.0, residual_stddev_,
                                {Split::kColumns, {rows}, columns}),
                            columns / parts);
    if (has_bias) tensors.bias = whole(name + ".bias", rows, 0.0, 0.0);
    return tensors;
  }

  // Quantised weights are words of the model's type that contain their bits.
  std::int64_t stored(std::int64_t elems, bool packed) const {
    if (!packed) return elems;
    const double bytes = static_cast<double>(elems) * *training_.base_bits() / 8.0;
    return static_cast<std::int64_t>(std::ceil(bytes / static_cast<double>(type_bytes_)));
  }

  int vocabulary(const std::string& name) {
    return add(name, vocab_rows(model_, tensor_ranks_) * model_.hidden, 0.0, kStddev,
               {Split::kRows, {model_.vocab}, model_.hidden});
  }

  // The tensor is the same on all tensor ranks; under sequence parallelism each rank uses only its own tokens.
  int whole(const std::string& name, std::int64_t elems, double mean, double stddev) {
    const int index = add(name, elems, mean, stddev, {});
    result_.partial_gradients.back() = sequence_parallel_;
    return index;
  }

  struct Cut {
    Split split = Split::kNone;
    std::vector<std::int64_t> block_rows{};
    std::int64_t row_elems = 0;
  };

  int add(const std::string& name, std::int64_t elems, double mean, double stddev, const Cut& cut) {
    result_.tensors.push_back(
        {name, elems, padded(elems), result_.padded_elems, mean, stddev, cut.split, cut.block_rows, cut.row_elems});
    result_.tensors.back().trained = !training_.freezes();
    result_.partial_gradients.push_back(false);
    result_.padded_elems += padded(elems);
    return static_cast<int>(result_.tensors.size()) - 1;
  }

  std::int64_t padded(std::int64_t elems) const {
    return (elems + granule_elems_ - 1) / granule_elems_ * granule_elems_;
  }

  const workload::ModelSpec& model_;
  const workload::TrainingSpec& training_;
  std::int64_t tensor_ranks_;
  std::int64_t expert_ranks_;
  bool whole_experts_;
  bool sequence_parallel_;
  std::int64_t type_bytes_;
  std::int64_t granule_elems_;
  double residual_stddev_;
  ParameterTable result_;
};

// Collects the trained tensors.
class ReadyOrder {
 public:
  explicit ReadyOrder(const ParameterTable& table) : table_(table) {}

  void push(int tensor) {
    if (tensor != kNoTensor && table_.tensors[static_cast<std::size_t>(tensor)].trained) order_.push_back(tensor);
  }
  void push(const NormTensors& norm) {
    push(norm.gain);
    push(norm.bias);
  }
  // As BlockTensors.latent's gradients come: of the heads' products first.
  void push(const LatentTensors& latent) {
    push(latent.kv_up);
    push(latent.kv_norm);
    push(latent.q_up);
    push(latent.q_norm);
    push(latent.q_down);
    push(latent.kv_down);
  }
  void push(const LinearTensors& linear) {
    for (const AdapterTensors& adapter : linear.adapters) {
      push(adapter.b);
      push(adapter.a);
    }
    push(linear.weight);
    push(linear.bias);
  }
  void push(const BlockTensors& block) {
    push(block.others);
    push(block.post_norm2);
    push(block.down);
    push(block.up);
    push(block.from_latent);
    push(block.experts_down);
    push(block.experts_up);
    push(block.to_latent);
    push(block.router);
    push(block.norm2);
    push(block.post_norm1);
    push(block.out);
    push(block.q_norm);
    push(block.k_norm);
    push(block.qkv);
    push(block.latent);
    push(block.mixer.norm);
    push(block.mixer.heads);
    push(block.mixer.conv);
    push(block.mixer.in);
    push(block.norm1);
  }
  // All but the norm before the head.
  void push(const MtpTensors& mtp) {
    for (auto block = mtp.blocks.rbegin(); block != mtp.blocks.rend(); ++block) push(*block);
    push(mtp.join);
    push(mtp.hidden_norm);
    push(mtp.embedding_norm);
  }
  std::vector<int> take() { return std::move(order_); }

 private:
  const ParameterTable& table_;
  std::vector<int> order_;
};

// The head's gradient is complete with the last further token's, whose norm comes after it.
void push_heads(const ParameterTable& table, ReadyOrder& order) {
  std::vector<NormTensors> norms = {table.final_norm};
  for (const MtpTensors& mtp : table.mtp) norms.push_back(mtp.final_norm);
  for (std::size_t i = 0; i + 1 < norms.size(); ++i) order.push(norms[i]);
  if (table.head != table.table) order.push(table.head);
  order.push(norms.back());
}

}  // namespace

ParameterTable make_parameters(const workload::Workload& workload, const Knobs& knobs) {
  return Adder(workload, knobs).table();
}

std::int64_t vocab_rows(const workload::ModelSpec& model, std::int64_t tensor_ranks) {
  return (model.vocab + tensor_ranks - 1) / tensor_ranks;
}

std::int64_t whole_element(const ParameterTensor& tensor, std::int64_t tensor_rank, std::int64_t tensor_ranks,
                           std::int64_t elem) {
  if (tensor.split == Split::kNone) return elem;
  if (tensor.split == Split::kColumns) {
    const std::int64_t width = tensor.row_elems / tensor_ranks;
    return elem / width * tensor.row_elems + tensor_rank * width + elem % width;
  }
  std::int64_t local_row = elem / tensor.row_elems;
  std::int64_t whole_row = 0;
  for (const std::int64_t rows : tensor.block_rows) {
    const std::int64_t share = (rows + tensor_ranks - 1) / tensor_ranks;
    if (local_row < share) {
      const std::int64_t row = tensor_rank * share + local_row;
      return row < rows ? (whole_row + row) * tensor.row_elems + elem % tensor.row_elems : -1;
    }
    local_row -= share;
    whole_row += rows;
  }
  return -1;
}

std::vector<int> gradient_ready_order(const ParameterTable& table) {
  ReadyOrder order(table);
  order.push(table.others);
  push_heads(table, order);
  for (auto mtp = table.mtp.rbegin(); mtp != table.mtp.rend(); ++mtp) order.push(*mtp);
  for (auto b = table.blocks.rbegin(); b != table.blocks.rend(); ++b) order.push(*b);
  order.push(table.positions);
  order.push(table.table);
  return order.take();
}

}  // namespace krigtune::schedule
