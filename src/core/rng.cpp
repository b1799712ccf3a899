// Philox4x32-10: ten rounds of two 32x32->64 multiplications and xors with a Weyl key sequence.
// Constants and round function: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
#include "krigtune/rng.h"

#include <cmath>
#include <numbers>

namespace krigtune {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Rng::Rng(std::uint64_t seed, std::uint64_t stream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
      counter_{0, 0, static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32U)} {}

Rng::result_type Rng::operator()() {
  if (next_ == block_.size()) {
    block_ = philox4x32(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    next_ = 0;
  }
  return block_[next_++];
}

double Rng::uniform() {
  const std::uint64_t high = (*this)() >> 5U;
  const std::uint64_t low = (*this)() >> 6U;
  return static_cast<double>((high << 26U) | low) * 0x1.0p-53;
}

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::uint64_t Rng::below(std::uint64_t count) {
  // Rejection sampling: only numbers below the largest multiple of `count` are accepted, so the remainder is unbiased.
  const std::uint64_t limit =
      std::numeric_limits<std::uint64_t>::max() - std::numeric_limits<std::uint64_t>::max() % count;
  std::uint64_t draw = 0;
  do {
    const std::uint64_t high = (*this)();
    draw = (high << 32U) | (*this)();
  } while (draw >= limit);
  return draw % count;
}

}  // namespace krigtune
