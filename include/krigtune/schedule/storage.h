#pragma once
#include <cstdint>

namespace krigtune {

enum class DType : std::uint8_t { kFp32, kBf16, kFp16, kInt32, kUint8 };
inline constexpr std::int64_t size_bytes(DType type) {
  return type == DType::kUint8 ? 1 : type == DType::kBf16 || type == DType::kFp16 ? 2 : 4;
}

/// What a buffer is for: the terms in which memory is explained.
enum class Term : std::uint8_t {
  kParameters,          ///< whole, or this rank's shard (stage 3)
  kGradients,           ///< kept over the step: whole (stages 0, 1) or this rank's shard
  kOptimizerState,      ///< moments and fp32 master parameters: whole (stage 0) or this rank's shard
  kGatheredParameters,  ///< stage 3: parameters while they are computed with
  kReduceBuckets,       ///< gradients until their bucket has been reduced
  kActivations,         ///< kept from forward to backward
  kLogits,
  kWorkspace,  ///< gradients of activations, what is computed again, and scratch
  kInputs,     ///< tokens, loss, control
};
inline constexpr int kTermCount = 9;
const char* to_string(Term term);

/// Which memory a buffer lies in. On CPU ranks both are this machine's, but they are counted apart.
enum class Place : std::uint8_t { kDevice, kHost };
inline constexpr int kPlaceCount = 2;

/// Buffers begin at multiples of it, and so does every rank's part of a tensor.
inline constexpr std::int64_t kAlignmentBytes = 64;

}  // namespace krigtune
