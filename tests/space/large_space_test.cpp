// Spaces that are too large to walk: counted and sampled exactly, compared with counts of their parts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "space/spaces.h"
#include "user_error.h"

namespace krigtune::large_space_test {

using Digits = std::vector<std::int64_t>;

// Parameters a, b, ... with the values 0 to 9.
space::Space digits_space(int dims, const std::vector<std::string>& constraints) {
  std::vector<space::Parameter> parameters;
  for (int i = 0; i < dims; ++i) {
    space::Parameter parameter{std::string(1, static_cast<char>('a' + i)), {}};
    for (std::int64_t value = 0; value < 10; ++value) parameter.values.emplace_back(value);
    parameters.push_back(parameter);
  }
  std::vector<space::Expression> parsed;
  for (const std::string& constraint : constraints) parsed.push_back(space::Expression::parse(constraint));
  return {parameters, {.well_known = false}, parsed};
}

Digits digits_of(const space::Configuration& c) {
  Digits digits;
  for (const auto& [name, value] : c) digits.push_back(std::get<std::int64_t>(value));
  return digits;
}

// Counts how often digit `at` is 0, 1, ..., 9 among the points of `dims` digits that meet `keep`, by walking them.
template <class Keep>
std::vector<double> marginal(int dims, int at, Keep keep) {
  std::vector<double> counts(10, 0.0);
  Digits digits(static_cast<std::size_t>(dims), 0);
  for (std::size_t i = 0; i < digits.size();) {
    if (keep(digits)) counts[static_cast<std::size_t>(digits[static_cast<std::size_t>(at)])] += 1.0;
    for (i = 0; i < digits.size() && ++digits[i] == 10; ++i) digits[i] = 0;
  }
  return counts;
}

double sum_of(const std::vector<double>& counts) {
  double sum = 0.0;
  for (const double count : counts) sum += count;
  return sum;
}

// Returns the 99.99 % point of chi squared after Wilson and Hilferty (1931): 3.719 standard normals.
double largest_chi_squared(double freedom) {
  const double spread = 2.0 / (9.0 * freedom);
  return freedom * std::pow(1.0 - spread + 3.719 * std::sqrt(spread), 3);
}

void expect_fits(const std::vector<double>& drawn, const std::vector<double>& expected) {
  const double scale = sum_of(drawn) / sum_of(expected);
  double chi_squared = 0.0;
  double freedom = -1.0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (expected[i] == 0.0) {
      EXPECT_EQ(drawn[i], 0.0) << i;
      continue;
    }
    chi_squared += std::pow(drawn[i] - expected[i] * scale, 2) / (expected[i] * scale);
    freedom += 1.0;
  }
  EXPECT_LE(chi_squared, largest_chi_squared(freedom));
}

bool first(const Digits& d) { return d[0] * d[1] <= 30; }
bool second(const Digits& d) { return (d[0] + d[1]) % 3 == 0 || d[2] == 0; }
bool third(const Digits& d) { return d[0] + d[1] + d[2] + d[3] <= 18; }

// Three constraints without a common parameter: counts and marginals are those of the parts.
const std::vector<std::string> kThree = {"a * b <= 30", "(c + d) % 3 == 0 || e == 0", "f + g + h + i <= 18"};

TEST(LargeSpace, OfABillionPointsIsCounted) {
  const space::Space space = digits_space(9, kThree);
  EXPECT_EQ(space.lattice_count(), 1'000'000'000);
  const double expected =
      sum_of(marginal(2, 0, first)) * sum_of(marginal(3, 0, second)) * sum_of(marginal(4, 0, third));
  EXPECT_EQ(static_cast<double>(space.count()), expected);
  const std::vector<space::ExclusionCount> exclusions = space.exclusions();
  EXPECT_EQ(static_cast<double>(exclusions.at(0).count), expected);
  EXPECT_EQ(exclusions.at(4).constraint, "a * b <= 30");
  EXPECT_EQ(exclusions.at(4).count, (100 - static_cast<std::int64_t>(sum_of(marginal(2, 0, first)))) * 10'000'000);
}

TEST(LargeSpace, OfABillionPointsIsSampledUniformly) {
  const space::Space space = digits_space(9, kThree);
  constexpr int kDraws = 20'000;
  std::vector<std::vector<double>> drawn(9, std::vector<double>(10, 0.0));
  std::vector<double> pairs(100, 0.0);  // of a and i, which no constraint connects
  Rng rng(17, 0);
  for (int draw = 0; draw < kDraws; ++draw) {
    const Digits digits = digits_of(space.sample(rng));
    for (std::size_t i = 0; i < 9; ++i) drawn[i][static_cast<std::size_t>(digits[i])] += 1.0;
    pairs[static_cast<std::size_t>(10 * digits[0] + digits[8])] += 1.0;
  }
  for (int i = 0; i < 2; ++i) expect_fits(drawn[static_cast<std::size_t>(i)], marginal(2, i, first));
  for (int i = 0; i < 3; ++i) expect_fits(drawn[static_cast<std::size_t>(2 + i)], marginal(3, i, second));
  for (int i = 0; i < 4; ++i) expect_fits(drawn[static_cast<std::size_t>(5 + i)], marginal(4, i, third));
  std::vector<double> expected;
  for (const double of_a : marginal(2, 0, first)) {
    for (const double of_i : marginal(4, 3, third)) expected.push_back(of_a * of_i);
  }
  expect_fits(pairs, expected);
}

// Compares cell by cell, if there are few enough.
TEST(LargeSpace, IsSampledAsItsListIs) {
  const space::Space space = digits_space(3, {"a + b + c == 9 || a * b * c == 24", "a != b || c > 4", "max(a, b) < 8"});
  std::map<std::string, std::size_t> cells;
  space.for_each([&](const space::Configuration& c) { return cells.emplace(c.text(), cells.size()).second; });
  ASSERT_GT(cells.size(), 30U);
  std::vector<double> drawn(cells.size(), 0.0);
  Rng rng(23, 0);
  for (std::size_t draw = 0; draw < 200 * cells.size(); ++draw) drawn[cells.at(space.sample(rng).text())] += 1.0;
  expect_fits(drawn, std::vector<double>(cells.size(), 1.0));
}

// Returns in how many ways at most `bound` is a sum of `dims` digits, by adding one digit after the other.
double sums_up_to(int dims, int bound) {
  std::vector<double> ways = {1.0};
  for (int i = 0; i < dims; ++i) {
    std::vector<double> next(ways.size() + 9, 0.0);
    for (std::size_t sum = 0; sum < ways.size(); ++sum) {
      for (std::size_t digit = 0; digit < 10; ++digit) next[sum + digit] += ways[sum];
    }
    ways = next;
  }
  double count = 0.0;
  for (std::size_t sum = 0; sum < ways.size() && sum <= static_cast<std::size_t>(bound); ++sum) count += ways[sum];
  return count;
}

TEST(LargeSpace, WithOneConstraintOverAllParametersIsCountedAndSampled) {
  const space::Space space = digits_space(9, {"a + b + c + d + e + f + g + h + i <= 40"});
  EXPECT_EQ(static_cast<double>(space.count()), sums_up_to(9, 40));
  std::vector<double> drawn(10, 0.0);
  std::vector<double> expected(10, 0.0);
  Rng rng(29, 0);
  for (int draw = 0; draw < 20'000; ++draw) drawn[static_cast<std::size_t>(digits_of(space.sample(rng))[4])] += 1.0;
  for (int digit = 0; digit < 10; ++digit) expected[static_cast<std::size_t>(digit)] = sums_up_to(8, 40 - digit);
  expect_fits(drawn, expected);
}

TEST(LargeSpace, WithAlmostNothingLeftIsSampledAllTheSame) {
  const space::Space space = digits_space(9, {"a + b + c + d + e + f + g + h + i >= 80", "a + i == 17"});
  Rng rng(31, 0);
  std::set<std::string> seen;
  for (int draw = 0; draw < 500; ++draw) {
    const space::Configuration c = space.sample(rng);
    ASSERT_TRUE(space.contains(c)) << c.text();
    seen.insert(c.text());
  }
  EXPECT_EQ(space.count(), 2);  // 17 and seven digits with a sum of at most 63: all nines, and a, i in either order
  EXPECT_EQ(seen.size(), 2U);
}

TEST(LargeSpace, ThatConstraintsEmptyIsEmpty) {
  EXPECT_TRUE(digits_space(9, {"a + b + c + d + e + f + g + h + i >= 82"}).is_empty());
  EXPECT_FALSE(digits_space(9, {"a + b + c + d + e + f + g + h + i >= 81"}).is_empty());
}

// 10^12 sums, of which 4005 are below 90. Only a walk would find them.
TEST(LargeSpace, ThatOnlyAWalkOfDaysWouldCountIsRefused) {
  std::vector<space::Parameter> parameters = {{"x", {}}, {"y", {}}};
  for (space::Parameter& parameter : parameters) {
    for (std::int64_t value = 0; value < 1'000'000; ++value) parameter.values.emplace_back(value);
  }
  const space::Space space(parameters, {.well_known = false}, {space::Expression::parse("x + y < 90")});
  EXPECT_EQ(user_error_of([&] { space.count(); }),
            "the conditions tie too many values together to be counted; give the ranges that they use fewer \"steps\"");
}

TEST(LargeSpace, CountsUpToTheLargestIntegerAndStaysThere) {
  const space::Space space = digits_space(25, {"a + b + c <= 5"});
  EXPECT_EQ(space.count(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(digits_space(18, {"a != b"}).count(), 900'000'000'000'000'000);
  Rng rng(37, 0);
  std::vector<double> drawn(10, 0.0);
  for (int draw = 0; draw < 5000; ++draw) drawn[static_cast<std::size_t>(digits_of(space.sample(rng))[20])] += 1.0;
  expect_fits(drawn, std::vector<double>(10, 1.0));
}

}  // namespace krigtune::large_space_test
