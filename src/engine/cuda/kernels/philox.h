// Philox4x32-10 (Salmon et al., SC'11) as in krigtune/rng.h, for kernels: one block of four words from a counter.
#pragma once
#include <cstdint>

#include "engine/cuda/kernels/device.h"
#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {

struct Words {
  std::uint32_t at[4];

  /// Returns at[i % 4], from registers.
  __device__ std::uint32_t pick(std::uint64_t i) const {
    const std::uint32_t even = (i & 2U) == 0 ? at[0] : at[2];
    const std::uint32_t odd = (i & 2U) == 0 ? at[1] : at[3];
    return (i & 1U) == 0 ? even : odd;
  }
};

__device__ inline Words philox(Words counter, std::uint32_t key0, std::uint32_t key1) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter.at[0];
    const std::uint64_t product1 = kMultiplier1 * counter.at[2];
    counter = {
        {static_cast<std::uint32_t>(product1 >> 32U) ^ counter.at[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32U) ^ counter.at[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

__device__ inline std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
__device__ inline std::uint32_t high_word(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); }

/// Draws the words of Rng(seed, stream), one after the other.
class DeviceRng {
 public:
  __device__ DeviceRng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  __device__ std::uint32_t next() {
    if (drawn_ % 4 == 0) {
      const std::uint64_t block = drawn_ / 4;
      words_ = philox({{low_word(block), high_word(block), low_word(stream_), high_word(stream_)}}, low_word(seed_),
                      high_word(seed_));
    }
    return words_.pick(drawn_++);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t drawn_ = 0;
  Words words_{};
};

// The draws of host/kernels/dropout_mask.h. A block of the generator serves four neighbouring elements.

class DropoutDraws {
 public:
  static constexpr std::uint32_t kHidden = 0x64726f70;
  static constexpr std::uint32_t kProbabilities = 0x70726f62;

  DropoutDraws(const DeviceCall& call, std::uint32_t of)
      : first_sequence_(call),
        dropped_below_(static_cast<std::uint64_t>(call.shape().dropout * 0x1.0p32)),
        scale_(static_cast<float>(1.0 / (1.0 - call.shape().dropout))) {
    const engine::StepContext& at = call.context;
    key0_ = static_cast<std::uint32_t>(at.options.seed) ^ of;
    key1_ = static_cast<std::uint32_t>(at.options.seed >> 32U);
    place_ = (static_cast<std::uint32_t>(call.operation.layer + 1) << 16U) |
             (static_cast<std::uint32_t>(call.shape().site) << 12U);
  }

  __device__ bool keeps(std::int64_t sequence_in_batch, std::int64_t element) const {
    return words_of(sequence_in_batch, element).pick(static_cast<std::uint64_t>(element)) >= dropped_below_;
  }
  /// Sets whether each of the pack's elements is kept. A pack of several elements begins at a multiple of its width.
  template <int kWidth, schedule::DType kType>
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
  /// Returns the factor of elements that are kept: 1 / (1 - p).
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
  std::uint64_t dropped_below_;  ///< of 2^32: smaller words drop an element
  float scale_;
  std::uint32_t place_;
  std::uint32_t key0_, key1_;
};

}  // namespace krigtune::cuda
