// The arithmetic of the checker's symbols, against definitions that are computed another way.
#include "plan/check/symbols.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "krigtune/rng.h"

namespace krigtune::symbols_test {
namespace {

using plan::Symbols;
namespace modular = plan::modular;

std::uint64_t random_number(Rng& rng) { return modular::of(rng.below(modular::kPrime)); }

// Russian peasants' multiplication: sums alone.
std::uint64_t product_by_sums(std::uint64_t x, std::uint64_t y) {
  std::uint64_t result = 0;
  for (; y > 0; y >>= 1U) {
    if ((y & 1U) != 0) result = (result + x) % modular::kPrime;
    x = 2 * x % modular::kPrime;
  }
  return result;
}

TEST(Symbols, ComputeModuloThePrime) {
  Rng rng(1, 0);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t x = i == 0 ? modular::kPrime - 1 : random_number(rng);
    const std::uint64_t y = i < 2 ? modular::kPrime - 1 : random_number(rng);
    EXPECT_EQ(modular::product(x, y), product_by_sums(x, y));
    EXPECT_EQ(modular::sum(modular::difference(x, y), y), x);
    EXPECT_EQ(modular::product(x, modular::inverse(x)), x == 0 ? 0U : 1U);
  }
  EXPECT_EQ(modular::of(std::int64_t{-1}), modular::kPrime - 1);
  EXPECT_EQ(modular::of(modular::kPrime), 0U);
}

// A symbol that is cut at random, or joined of parts, has the weighed sum of the whole.
TEST(Symbols, WeighedSumsAreLinearWhereverValuesAreCut) {
  Rng rng(2, 0);
  for (int i = 0; i < 100; ++i) {
    const auto elems = static_cast<std::int64_t>(1 + rng.below(20));
    const auto cut = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(elems)));
    Symbols x(elems, 100 + static_cast<std::uint64_t>(i));
    Symbols y(cut);
    y.append(Symbols(elems - cut, 900 + static_cast<std::uint64_t>(i)));
    const std::uint64_t apart = modular::sum(x.weighed(7), y.weighed(7));
    Symbols both = x;
    both.add(y);
    EXPECT_EQ(both.weighed(7), apart);
    Symbols again = both.part(0, cut);
    again.append(both.part(cut, elems - cut));
    EXPECT_EQ(again.weighed(7), apart);
    EXPECT_NE(again.weighed(8), apart);
  }
  EXPECT_EQ(Symbols(5).weighed(3), 0U);
  EXPECT_NE(Symbols(6, 1).part(0, 5).weighed(3), Symbols(6, 1).part(1, 5).weighed(3)) << "places count";
}

// Sums of any number of symbols can be found again in their parts, also where an arithmetic modulo 2^64 would have lost
// all digits.
TEST(Symbols, PartsOfLongSumsAreFoundAgain) {
  Symbols sum(40, 1);
  for (int i = 0; i < 200; ++i) sum.add(sum);
  const plan::Piece whole = sum.pieces().front();
  for (const std::int64_t begin : {0, 3, 39}) {
    const Symbols part = sum.part(begin, 1);
    EXPECT_EQ(plan::place_in(whole, part.pieces().front(), 0), begin);
  }
  EXPECT_EQ(plan::place_in(whole, Symbols(40, 2).pieces().front(), 0), -1);
}

// A backward operation gives the same for a sum of derivatives as in sum for each, and not the same for other values.
TEST(Symbols, BackwardOperationsAreLinearInDerivatives) {
  const plan::SymbolicCall call{schedule::OpKind::kLinearBackwardInput, {.rows = 4, .inner = 3, .outer = 2}};
  const Symbols weight(6, 1);
  const Symbols first(8, 2);
  const Symbols second(8, 3);
  Symbols both = first;
  both.add(second);
  const auto dx = [&](const Symbols& dy, const Symbols& of) { return call.result({{dy, true}, {of}}, 2, 12); };
  Symbols sum = dx(first, weight);
  sum.add(dx(second, weight));
  EXPECT_TRUE(dx(both, weight) == sum);
  EXPECT_TRUE(dx(Symbols(8), weight).is_zero());
  EXPECT_FALSE(dx(first, weight) == dx(second, weight));
  EXPECT_FALSE(dx(first, weight) == dx(first, Symbols(6, 4)));
}

}  // namespace
}  // namespace krigtune::symbols_test
