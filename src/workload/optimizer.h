#pragma once
#include <array>
#include <cstdint>

namespace krigtune::workload {

enum class OptimizerKind : std::uint8_t { kAdamW, kSgd, kAdamW8bit, kLion, kLion8bit, kAdafactor, kSgdPlain, kMuon };
inline constexpr int kOptimizerCount = 8;

/// What an optimizer keeps for each parameter beside the weight.
struct OptimizerTraits {
  OptimizerKind kind{};
  const char* word = "";  ///< in session files
  const char* name = "";  ///< for people
  int moments = 0;        ///< values for each parameter
  /// They are quantised to 8 bits, with an fp32 constant for each 256 of them, which is not counted (1.6 %). Otherwise
  /// they have the type of TrainingSpec::states.
  bool in_8_bits = false;
  bool predicted_only = false;  ///< krigtune-bench does not have it
  /// The matrices of blocks have one moment alone, and products make their update of it; other weights have AdamW's
  /// moments and update.
  bool orthogonalizes = false;
};

/// AdamW: Loshchilov and Hutter 2019. SGD with momentum. 8 bits: Dettmers et al. 2022, "8-bit optimizers via block-wise
/// quantization", section 2. Lion: Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2.
/// Adafactor: Shazeer and Stern 2018, algorithm 4, without a first moment; the sums of rows and columns, n + m values
/// for n m weights, are not counted. Muon: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural
/// networks"; Liu et al. 2025, "Muon is scalable for LLM training", arXiv:2502.16982.
inline constexpr std::array<OptimizerTraits, kOptimizerCount> kOptimizers = {{
    {.kind = OptimizerKind::kAdamW, .word = "adamw", .name = "AdamW", .moments = 2},
    {.kind = OptimizerKind::kSgd, .word = "sgd", .name = "SGD", .moments = 1},
    {.kind = OptimizerKind::kAdamW8bit,
     .word = "adamw8bit",
     .name = "AdamW with states of 8 bits",
     .moments = 2,
     .in_8_bits = true,
     .predicted_only = true},
    {.kind = OptimizerKind::kLion, .word = "lion", .name = "Lion", .moments = 1, .predicted_only = true},
    {.kind = OptimizerKind::kLion8bit,
     .word = "lion8bit",
     .name = "Lion with states of 8 bits",
     .moments = 1,
     .in_8_bits = true,
     .predicted_only = true},
    {.kind = OptimizerKind::kAdafactor, .word = "adafactor", .name = "Adafactor", .moments = 0, .predicted_only = true},
    {.kind = OptimizerKind::kSgdPlain,
     .word = "sgd-plain",
     .name = "SGD without momentum",
     .moments = 0,
     .predicted_only = true},
    {.kind = OptimizerKind::kMuon,
     .word = "muon",
     .name = "Muon",
     .moments = 2,
     .predicted_only = true,
     .orthogonalizes = true},
}};

constexpr const OptimizerTraits& traits_of(OptimizerKind optimizer) {
  return kOptimizers[static_cast<std::size_t>(optimizer)];
}

}  // namespace krigtune::workload
