#include "krigtune/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace krigtune::rng_test {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, IsAFunctionOfSeedAndStream) {
  Rng a(7, 3);
  Rng b(7, 3);
  Rng other_stream(7, 4);
  Rng other_seed(8, 3);
  const auto first = a();
  EXPECT_EQ(first, b());
  EXPECT_NE(first, other_stream());
  EXPECT_NE(first, other_seed());
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(1, 0);
  constexpr int kDraws = 100'000;
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = rng.normal();
    sum += draw;
    squares += draw * draw;
  }
  // Five standard errors of the mean (1/sqrt n) and of the second moment (sqrt(2/n)).
  EXPECT_LE(std::abs(sum / kDraws), 5.0 / std::sqrt(kDraws));
  EXPECT_LE(std::abs(squares / kDraws - 1.0), 5.0 * std::sqrt(2.0 / kDraws));
}

TEST(Rng, BelowReachesEveryValueEvenly) {
  Rng rng(2, 0);
  constexpr int kDraws = 60'000;
  std::vector<int> counts(6);
  for (int i = 0; i < kDraws; ++i) ++counts[rng.below(6)];
  // Each count is binomial(n, 1/6); five standard deviations.
  for (const int count : counts) EXPECT_LE(std::abs(count - 10'000), 5.0 * std::sqrt(kDraws * 5.0 / 36.0));
}

TEST(Rng, ShuffleKeepsTheItems) {
  Rng rng(3, 0);
  std::vector<int> items(50);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  rng.shuffle(shuffled);
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

}  // namespace krigtune::rng_test
