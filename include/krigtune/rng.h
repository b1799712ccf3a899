#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace krigtune {

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3").
/// The n-th number depends only on (seed, stream, n), so trial number `stream` of a resumed session draws the same
/// numbers as in a session that was never interrupted.
class Rng {
 public:
  using result_type = std::uint32_t;

  Rng(std::uint64_t seed, std::uint64_t stream);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();

  /// Returns a uniform number in [0, 1) with 53 random bits.
  double uniform();
  /// Returns a standard normal number (Box-Muller).
  double normal();
  /// Returns a uniform integer in [0, count) without bias; count >= 1.
  std::uint64_t below(std::uint64_t count);
  /// Shuffles a container that has size() and operator[] (Fisher-Yates).
  template <class Container>
  void shuffle(Container& items) {
    for (std::uint64_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  unsigned next_ = 4;
};

/// Computes one block of Philox4x32-10, a pure function of (counter, key).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

}  // namespace krigtune
