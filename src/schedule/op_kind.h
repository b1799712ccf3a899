#pragma once
#include <cstddef>
#include <cstdint>
namespace krigtune::schedule {

/// What an operation computes. Its operands in order, its name, what it costs and whose derivative it is stand in one
/// table, src/plan/op_traits.cpp (plan/op_traits.h). Matrices are row-major. Numbers are computed in fp32 and
/// rounded to the type of the buffer that they are put into.
enum class OpKind : std::uint8_t {
  kLoadBatch,
  kZero,
  kCopy,
  kAccumulate,
  kEmbeddingForward,
  kEmbeddingBackward,
  kPositionsForward,
  kPositionsBackward,
  kLayerNormForward,
  kLayerNormBackward,
  kRmsNormForward,
  kRmsNormBackward,
  kLinearForward,
  kLinearBackwardInput,
  kLinearBackwardWeight,
  kAddBias,
  kBiasBackward,
  kRotaryForward,
  kRotaryBackward,
  kAttentionForward,
  kAttentionBackward,
  kGeluForward,
  kGeluBackward,
  kSwigluForward,
  kSwigluBackward,
  kDropoutForward,
  kDropoutBackward,
  kAdd,
  kCrossEntropy,
  kVocabMax,
  kVocabSumExp,
  kVocabCrossEntropy,
  kGradientNorm,
  kLossScale,
  kAdamW,
  kSgd,
  kAllReduce,
  kAllReduceMax,
  kReduceScatter,
  kAllGather,  // the last one
};
inline constexpr int kOpKindCount = static_cast<int>(OpKind::kAllGather) + 1;

/// The state of clipping and of dynamic loss scaling: elements of StepPlan::control.
enum ControlElement : std::uint8_t {
  kLossScaleElement,  ///< by which the loss is multiplied
  kGoodStepsElement,  ///< since the scale was changed
  kFactorElement,     ///< of the gradients of this step: 1 / scale, and clipping; 0: an overflow, nothing is updated
  kUpdatesElement,    ///< optimizer updates done, overflows left out
  kNormElement,       ///< of the step's unscaled gradients, before clipping
  kControlElementCount
};

/// The logical streams of one rank. Operations of one stream run in order; streams are ordered by waits only.
/// kCopy moves bytes between device and host memory, kHost computes on the host (offloaded optimizers).
enum class Stream : std::uint8_t { kCompute, kGather, kReduce, kCopy, kHost };
inline constexpr int kStreamCount = 5;
inline constexpr std::size_t index_of(Stream stream) { return static_cast<std::size_t>(stream); }

/// Among whom a collective communicates. World rank = data rank * tensor ranks + tensor rank (Megatron's order).
enum class Group : std::uint8_t { kData, kTensor };
inline constexpr int kGroupCount = 2;

enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };
inline constexpr int kPhaseCount = 4;
const char* to_string(Phase phase);

}  // namespace krigtune::schedule
