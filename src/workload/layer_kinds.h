#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace krigtune::workload {

/// What mixes the tokens of a layer.
enum class Mixer : std::uint8_t {
  kNone,
  kAttention,
  kMamba,  ///< a state-space layer (Dao and Gu 2024, "Transformers are SSMs", arXiv:2405.21060: Mamba-2)
  kDelta   ///< linear attention with a gated delta rule (Yang et al. 2024, "Gated Delta Networks", arXiv:2412.06464)
};
enum class FeedForward : std::uint8_t { kNone, kMlp, kExperts };

/// A layer has a mixer, then an MLP or experts, or only one of both (Nemotron-H, arXiv:2504.03624).
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  FeedForward feed_forward = FeedForward::kMlp;

  bool is_single() const { return mixer == Mixer::kNone || feed_forward == FeedForward::kNone; }
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// Returns "attention and experts".
std::string to_string(const LayerKind& kind);

/// The layers of one kind.
struct LayersOfKind {
  LayerKind kind;
  std::int64_t layers = 0;
};

/// A model may have layers of this many kinds.
inline constexpr std::size_t kMostKinds = 4;
/// How many layers there are of each kind but the last one, in the order of ModelSpec::kinds.
using OtherLayers = std::array<std::int64_t, kMostKinds - 1>;

/// How many layers of each kind a hybrid model has. They are spread evenly among each other. No layers at all: all have
/// attention, and an MLP or experts, as ExpertSpec says.
struct LayerCounts {
  std::int64_t attention_mlp = 0, mamba_mlp = 0, delta_mlp = 0;
  std::int64_t mlp = 0, mamba = 0, delta = 0, attention = 0, experts = 0;  ///< with nothing else
  std::int64_t mamba_experts = 0, delta_experts = 0, attention_experts = 0;

  std::int64_t sum() const;
  /// Returns the kinds that there are, in the order of the members.
  std::vector<LayersOfKind> kinds() const;
  /// Returns the member that counts a kind.
  std::int64_t& of(const LayerKind& kind);
  friend bool operator==(const LayerCounts&, const LayerCounts&) = default;
};

/// Mamba-2's mixer. One product makes of each token a gate z and values x (both `inner` wide), B and C (`state` numbers
/// for each group of heads) and a time step for each head. x, B and C pass a causal convolution; the scan of each head
/// has a state of head_dim x state numbers. Its output is multiplied by silu(z) and normed within groups of heads.
struct MambaSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 64;
  std::int64_t state = 128;  ///< N of the paper
  std::int64_t groups = 8;   ///< of heads that share B and C
  std::int64_t conv = 4;     ///< tokens that the convolution reaches over; it has a bias
  std::int64_t chunk = 128;  ///< tokens that the scan handles by matrix products at once

  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t conv_width() const { return inner() + 2 * groups * state; }
  std::int64_t in_width() const { return inner() + conv_width() + heads; }
  /// Of the convolution, of the norm, and three numbers a head: decay (A), bias of its time step, skip (D).
  std::int64_t small_params() const { return conv_width() * (conv + 1) + inner() + 3 * heads; }
  std::int64_t state_elems() const { return inner() * state; }  ///< of all heads
  friend bool operator==(const MambaSpec&, const MambaSpec&) = default;
};

/// The mixer of gated DeltaNet as Qwen3-Next and OLMo Hybrid have it. Products make queries and keys, values and a gate
/// as wide as they, and two numbers a head of values. Queries, keys and values pass a causal convolution; several heads
/// of values share the keys of one head. The output is normed by heads and multiplied by silu(gate).
struct DeltaSpec {
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_dim = 128, value_dim = 128;  ///< of a head
  std::int64_t conv = 4;                        ///< tokens that the convolution reaches over
  std::int64_t chunk = 64;                      ///< flash-linear-attention's

  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  std::int64_t conv_width() const { return 2 * keys() + values(); }
  std::int64_t in_width() const { return conv_width() + values() + 2 * value_heads; }
  /// Of the convolution, of the norm, and two numbers a head: decay (A) and the bias of its time step.
  std::int64_t small_params() const { return conv_width() * conv + value_dim + 2 * value_heads; }
  std::int64_t state_elems() const { return value_heads * key_dim * value_dim; }  ///< of all heads
  friend bool operator==(const DeltaSpec&, const DeltaSpec&) = default;
};

}  // namespace krigtune::workload
