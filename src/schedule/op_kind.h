#pragma once
#include <cstddef>
#include <cstdint>
namespace krigtune::schedule {

/// The kind of computation of an operation. One table, src/plan/op_table.cpp (plan/op_traits.h), has its operands in
/// order, its name, its cost, and which operation it is the derivative of. Matrices are row-major. Numbers are computed
/// in fp32 and rounded to the type of the buffer that receives them.
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
  kDequantize,
  kLinearForward,
  kLinearBackwardInput,
  kLinearBackwardWeight,
  kAddBias,
  kBiasBackward,
  kQkNormForward,
  kQkNormBackward,
  kLatentNormForward,
  kLatentNormBackward,
  kLatentHeadsForward,
  kLatentHeadsBackward,
  kRotaryForward,
  kRotaryBackward,
  kAttentionForward,
  kAttentionBackward,
  kMambaForward,
  kMambaBackward,
  kDeltaForward,
  kDeltaBackward,
  kGeluForward,
  kGeluBackward,
  kSwigluForward,
  kSwigluBackward,
  kDropoutForward,
  kDropoutBackward,
  kRouteForward,
  kRouteBackward,
  kDispatchForward,
  kDispatchBackward,
  kGroupedForward,
  kGroupedBackwardInput,
  kGroupedBackwardWeight,
  kCombineForward,
  kCombineBackward,
  kAdd,
  kCrossEntropy,
  kVocabMax,
  kVocabSumExp,
  kVocabCrossEntropy,
  kGradientNorm,
  kLossScale,
  kAdamW,
  kSgd,
  kAdamW8bit,
  kLion,
  kAdafactor,
  kSgdPlain,
  kMomentum,
  kOrthogonalize,
  kAllReduce,
  kAllReduceMax,
  kReduceScatter,
  kAllGather,  // the last one
};
inline constexpr int kOpKindCount = static_cast<int>(OpKind::kAllGather) + 1;

/// The state of clipping and of dynamic loss scaling: elements of StepPlan::control.
enum ControlElement : std::uint8_t {
  kLossScaleElement,  ///< factor by which the loss is multiplied
  kGoodStepsElement,  ///< steps since the scale was changed
  /// Factor on the gradients of this step, 1 / scale times clipping; 0: overflow, nothing is updated.
  kFactorElement,
  kUpdatesElement,  ///< optimizer updates so far, without overflows
  kNormElement,     ///< norm of the step's unscaled gradients, before clipping
  kControlElementCount
};

/// The logical streams of one rank. Operations of one stream run in order; between streams only waits impose an order.
/// kCopy moves bytes between device and host memory; kHost computes on the host (offloaded optimizers).
enum class Stream : std::uint8_t { kCompute, kGather, kReduce, kCopy, kHost };
inline constexpr int kStreamCount = 5;
inline constexpr std::size_t index_of(Stream stream) { return static_cast<std::size_t>(stream); }

/// The ranks among which a collective communicates. World rank = data rank * tensor ranks + tensor rank (Megatron's
/// order).
enum class Group : std::uint8_t { kData, kTensor };
inline constexpr int kGroupCount = 2;

enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };
inline constexpr int kPhaseCount = 4;
const char* to_string(Phase phase);

}  // namespace krigtune::schedule
