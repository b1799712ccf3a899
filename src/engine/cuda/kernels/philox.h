#pragma once
// Philox4x32-10 (Salmon et al., SC'11) as core/rng.h has it, for kernels: one block of four words from a counter.
#include <cstdint>

#include "cuda/kernels/device.h"

namespace krigtune::cuda {

struct Words {
  std::uint32_t at[4];

  /// at[i % 4], from registers.
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

/// The words that Rng(seed, stream) draws, one after the other.
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

}  // namespace krigtune::cuda
