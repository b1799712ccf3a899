#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/block.h"

namespace krigtune::workload {

/// The linear layers of a block that can have an adapter. Of experts, those of the MLP that every token passes.
enum class AdaptedLayer : std::uint8_t { kQuery, kKey, kValue, kOutput, kGate, kUp, kDown };
inline constexpr int kAdaptedLayerCount = 7;
const char* to_string(AdaptedLayer layer);  ///< q, k, v, o, gate, up, down

/// Low-rank adapters (LoRA: Hu et al. 2021, "Low-rank adaptation of large language models"). A linear layer y = W x
/// gets y = W x + B A x with A (rank, inputs) and B (outputs, rank). W, and every other weight of the model, is frozen.
struct AdapterSpec {
  std::int64_t rank = 0;  ///< 0: no adapters
  std::array<bool, kAdaptedLayerCount> targets = {true, true, true, true, true, true, true};
  double dropout = 0.0;  ///< probability, on the inputs of each adapter
  /// One adapter for q, k and v together, and one for gate and up, as of Megatron-Bridge's and NeMo's linear_qkv and
  /// linear_fc1, if all of them have one.
  bool joined = false;

  bool targets_layer(AdaptedLayer layer) const { return targets[static_cast<std::size_t>(layer)]; }
  /// Returns whether these layers have one adapter together.
  bool joins(const std::vector<AdaptedLayer>& layers) const;
  friend bool operator==(const AdapterSpec&, const AdapterSpec&) = default;
};

/// How the frozen matrices of the blocks are stored. kNf4: 4-bit NormalFloat with an fp32 constant for each 64 weights;
/// kNf4Double: its constants are 8-bit, with an fp32 constant for each 256 of them (Dettmers et al. 2023, "QLoRA",
/// section 3). kInt8: with an fp32 constant for each row, which is not counted (Dettmers et al. 2022, "LLM.int8()").
/// Products first restore them to the model's type.
enum class BaseFormat { kAsModel, kInt8, kNf4, kNf4Double };

/// Whose kernels compute norms and gated activations. kFused: one kernel each, which keeps its input (Megatron, Liger,
/// Unsloth). kEager: PyTorch's own, one for each step of the formula, as in Hugging Face's models: an RMS norm keeps
/// its input in fp32 and, for the gradient of the gain, the normalised rows in the model's type; a gated activation
/// keeps the activated gate. Layer norms and GELU are one kernel in PyTorch too.
enum class Kernels { kFused, kEager };

/// kPlain: all logits exist at once. kFused: head and loss are computed together, for some tokens after the other, so
/// that the logits never exist whole (Hsu et al. 2024, "Liger Kernel", section 3.2).
enum class LossKind { kPlain, kFused };

/// What the optimizer keeps of weights in 16 bits. kFp32: an fp32 copy of the weights, and moments in fp32
/// (Micikevicius et al. 2018, "Mixed precision training"). kAsModel: no copy, and moments in the type of the weights,
/// as PyTorch's optimizers have them for a model that was loaded in bf16.
enum class OptimizerStates { kFp32, kAsModel };

/// Types of what the optimizer keeps with OptimizerStates::kFp32, where a framework lets them be narrower (Megatron's
/// precision-aware optimizer). Masters of 16 bits are fp16, or what fp32 has beyond the weights in bf16 (Transformer
/// Engine's FusedAdam, store_param_remainders). Gradients are those of frameworks that sum them in fp32.
enum class StateType { kFp32, kBf16, kFp16, kFp8 };
struct StateTypes {
  StateType first_moment = StateType::kFp32, second_moment = StateType::kFp32;
  StateType masters = StateType::kFp32;
  std::optional<StateType> gradients = {};  ///< empty: as usual for the framework, see kept_gradients()

  friend bool operator==(const StateTypes&, const StateTypes&) = default;
};
inline constexpr std::int64_t size_bytes(StateType type) {
  return type == StateType::kFp32 ? 4 : type == StateType::kFp8 ? 1 : 2;
}

/// What the products of the blocks' linear layers, experts included, read. Attention, the router, the embedding and the
/// head remain in the model's type, which is bf16 then, as in Transformer Engine and in DeepSeek-AI 2024,
/// "DeepSeek-V3", section 3.3. The words of "precision" in a session: fp8-delayed and fp8-tensorwise have one scale a
/// tensor (from earlier steps, or from the tensor itself), fp8-blockwise one for each 1 x 128 inputs and 128 x 128
/// weights, mxfp8 one for each 32 numbers, nvfp4 one for each 16 numbers of 4 bits.
enum class ProductFormat { kAsModel, kFp8Delayed, kFp8Tensorwise, kFp8Blockwise, kMxFp8, kNvFp4 };

/// Products of the blocks' linear layers that ProductFormat leaves in the model's type, as recipes name them
/// (Transformer Engine's quantization recipes; NVIDIA 2026, "Nemotron 3 Super", arXiv:2604.12374).
struct PreciseProducts {
  bool attention = false;        ///< those before and after attention
  bool latents = false;          ///< those to and from the latents of experts (ExpertSpec::latent)
  bool mixer_outputs = false;    ///< those after a mixer are in fp8 where the others are in fp4
  std::int64_t last_layers = 0;  ///< all of the model's last layers

  friend bool operator==(const PreciseProducts&, const PreciseProducts&) = default;
};

/// How the model is trained. By default all weights are.
struct TrainingSpec {
  AdapterSpec lora = {};
  BaseFormat base = BaseFormat::kAsModel;
  std::optional<Kernels> kernels = {};  ///< empty: as usual for the framework
  bool compile = false;                 ///< torch.compile, which fuses kernels and issues them with less work
  LossKind loss = LossKind::kPlain;
  OptimizerStates states = OptimizerStates::kFp32;
  StateTypes state_types = {};
  ProductFormat products = ProductFormat::kAsModel;  ///< said by the workload's "precision"
  PreciseProducts precise = {};
  bool fp8_attention = false;  ///< the products of attention itself are in fp8 (Transformer Engine: fp8_dpa)
  /// One kernel computes the products of all experts of a rank, their biases, activation and its quantisation
  /// (Megatron:
  /// --use-transformer-engine-op-fuser). Otherwise Megatron calls a product for each expert.
  bool fused_experts = false;

  bool has_narrow_products() const { return products != ProductFormat::kAsModel; }
  bool freezes() const { return lora.rank > 0; }
  /// Returns the bits of one frozen weight of a block's matrices; empty if it has the model's type.
  std::optional<double> base_bits() const;

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

/// Returns the layers that a name of PEFT, torchtune or LitGPT stands for, such as "q_proj", "c_attn", "attn" or
/// "all-linear"; empty if it is not known.
std::vector<AdaptedLayer> adapted_layers(std::string_view name);

/// Returns how many parts a fused loss is computed in, each of as many tokens of every sequence: about as many as keep
/// the logits of a part as large as the hidden states (Liger's rule).
std::int64_t fused_loss_parts(std::int64_t vocab, std::int64_t hidden);

/// The key "training" of a workload.
Block<TrainingSpec> training_block();

}  // namespace krigtune::workload
