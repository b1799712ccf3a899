#pragma once
// The draws of host/kernels/dropout_mask.h: a block of the generator serves four neighbouring elements.
#include "cuda/kernels/elements.h"
#include "cuda/kernels/philox.h"

namespace krigtune::cuda {

class DropoutDraws {
 public:
  static constexpr std::uint32_t kHidden = 0x64726f70;
  static constexpr std::uint32_t kProbabilities = 0x70726f62;

  DropoutDraws(const DeviceCall& call, std::uint32_t of)
      : first_sequence_(call),
        dropped_below_(static_cast<std::uint64_t>(call.shape().dropout * 0x1.0p32)),
        scale_(static_cast<float>(1.0 / (1.0 - call.shape().dropout))) {
    const StepContext& at = call.context;
    key0_ = static_cast<std::uint32_t>(at.options.seed) ^ of;
    key1_ = static_cast<std::uint32_t>(at.options.seed >> 32U);
    place_ = (static_cast<std::uint32_t>(call.operation.layer + 1) << 16U) |
             (static_cast<std::uint32_t>(call.shape().site) << 12U);
  }

  __device__ bool keeps(std::int64_t sequence_in_batch, std::int64_t element) const {
    return words_of(sequence_in_batch, element).pick(static_cast<std::uint64_t>(element)) >= dropped_below_;
  }
  /// Whether each of the pack's elements is kept; a pack of several begins at a multiple of its width.
  template <int kWidth, DType kType>
  __device__ void keeps(std::int64_t sequence_in_batch, Place<kWidth, kType> place, bool (&kept)[kWidth]) const {
    if constexpr (kWidth == 1) {
      kept[0] = keeps(sequence_in_batch, place.first);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; k += 4) {
        const Words words = words_of(sequence_in_batch, place.first + k);
        for (int w = 0; w < 4; ++w) kept[k + w] = words.at[w] >= dropped_below_;
      }
    }
  }
  /// Of what is kept: 1 / (1 - p).
  __device__ float scale() const { return scale_; }
  __device__ bool drops() const { return dropped_below_ > 0; }

 private:
  __device__ Words words_of(std::int64_t sequence_in_batch, std::int64_t element) const {
    const std::uint64_t sequence = static_cast<std::uint64_t>(first_sequence_() + sequence_in_batch);
    const std::uint64_t block = static_cast<std::uint64_t>(element) / 4;
    return philox({{low_word(block), place_ ^ high_word(block), low_word(sequence), high_word(sequence)}}, key0_,
                  key1_);
  }

  FirstSequence first_sequence_;
  std::uint64_t dropped_below_;  ///< of 2^32
  float scale_;
  std::uint32_t place_;
  std::uint32_t key0_, key1_;
};

}  // namespace krigtune::cuda
