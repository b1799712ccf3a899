#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace krigtune {

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3").
/// The numbers are a function of (seed, stream, how many were drawn) and of nothing else, so that trial `stream`
/// of a resumed session draws what it would have drawn in one that was never interrupted.
class Rng {
 public:
  using result_type = std::uint32_t;

  Rng(std::uint64_t seed, std::uint64_t stream);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();

  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Standard normal (Box-Muller).
  double normal();
  /// Uniform in [0, count), without bias; count >= 1.
  std::uint64_t below(std::uint64_t count);
  /// Fisher-Yates; any container with size() and operator[].
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

/// One block of Philox4x32-10: a pure function of (counter, key).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

}  // namespace krigtune
