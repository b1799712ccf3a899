// Sampling and neighbours of a space.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "space/spaces.h"

namespace krigtune::neighbours_test {

void expect_uniform(const space::Space& space, int draws_per_configuration) {
  std::map<std::string, int> counts;
  for (const space::Configuration& c : all_of(space)) counts[c.text()] = 0;
  const auto kinds = static_cast<double>(counts.size());
  Rng rng(11, 0);
  const int draws = draws_per_configuration * static_cast<int>(counts.size());
  for (int i = 0; i < draws; ++i) {
    const space::Configuration c = space.sample(rng);
    ASSERT_TRUE(space.contains(c)) << c.text();
    ++counts[c.text()];
  }
  double chi_squared = 0.0;
  for (const auto& [text, count] : counts) chi_squared += std::pow(count - draws_per_configuration, 2);
  chi_squared /= draws_per_configuration;
  // Chi squared with n - 1 degrees of freedom has the mean n - 1 and the standard deviation sqrt(2 (n - 1)); five of
  // them.
  EXPECT_LE(std::abs(chi_squared - (kinds - 1.0)), 5.0 * std::sqrt(2.0 * (kinds - 1.0)));
}

TEST(Sample, IsUniformOverMeaningsNotOverLatticePoints) { expect_uniform(quickstart_space(200'000), 50); }

TEST(Sample, IsUniformWhereAlmostNothingIsLeft) {
  space::Space space =
      space_from(R"({"a": {"min": 1, "max": 40}, "b": {"min": 1, "max": 40}, "c": {"min": 1, "max": 20}})");
  space.restrict_to([](const space::Configuration& c) {  // 4 of 32,000: a thousand random draws would miss them
    return c.integer("a", 0) == 7 && c.integer("b", 0) == 9 && c.integer("c", 0) > 16;
  });
  expect_uniform(space, 25);
}

TEST(Sample, IsAFunctionOfTheGenerator) {
  Rng a(5, 2);
  Rng b(5, 2);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(quickstart_space().sample(a), quickstart_space().sample(b));
}

TEST(Sample, OfAnEmptySpaceIsAnError) {
  const space::Space space = space_from(R"({"micro_batch": [3]})", {.ranks = 2, .train_batch_size = 16});
  Rng rng(1, 0);
  EXPECT_THROW(space.sample(rng), UserError);
}

TEST(Neighbours, AreDistinctConfigurationsOfTheSpaceAndNeverThePoint) {
  for (const std::int64_t parameter_count : {5'000'000, 50'000}) {
    const space::Space space = quickstart_space(parameter_count);
    for (const space::Configuration& c : all_of(space)) {
      const std::vector<space::Configuration> neighbours = space.neighbours(c);
      EXPECT_GE(neighbours.size(), 3U) << c.text();
      for (std::size_t i = 0; i < neighbours.size(); ++i) {
        EXPECT_TRUE(space.contains(neighbours[i]));
        EXPECT_FALSE(neighbours[i] == c);
        EXPECT_EQ(std::count(neighbours.begin(), neighbours.end(), neighbours[i]), 1);
      }
    }
  }
}

TEST(Neighbours, LeadFromAnywhereToEverywhere) {
  const space::Space space = quickstart_space(200'000);
  std::vector<space::Configuration> reached = {all_of(space).front()};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const space::Configuration& next : space.neighbours(reached[i])) {
      if (std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(reached.size()), space.count());
}

std::vector<std::string> texts(const std::vector<space::Configuration>& configurations) {
  std::vector<std::string> result;
  for (const space::Configuration& c : configurations) result.push_back(c.text());
  return result;
}

TEST(Neighbours, AreOneStepOfAnOrderedOrAnyOtherCategory) {
  const space::Space space = space_from(R"({"a": [10, 20, 30, 40], "c": ["x", "y", "z"]})");
  EXPECT_EQ(texts(space.neighbours({{"a", std::int64_t{20}}, {"c", "z"}})),
            (std::vector<std::string>{"a=10 c=z", "a=30 c=z", "a=20 c=x", "a=20 c=y"}));
}

TEST(Neighbours, LeapOverHoles) {
  const space::Space space =
      space_from(R"({"micro_batch": {"min": 1, "max": 8}})", {.ranks = 2, .train_batch_size = 16});
  EXPECT_EQ(
      texts(space.neighbours({{"micro_batch", std::int64_t{4}}, {"gradient_accumulation_steps", std::int64_t{2}}})),
      (std::vector<std::string>{"micro_batch=2 gradient_accumulation_steps=4",
                                "micro_batch=8 gradient_accumulation_steps=1"}));
}

TEST(Neighbours, MoveBothFactorsOfTheBatch) {
  const space::Space space = space_from(R"({"micro_batch": [1, 2, 4, 8], "gradient_accumulation_steps": [1, 2, 4, 8]})",
                                        {.ranks = 2, .train_batch_size = 16});
  EXPECT_EQ(
      texts(space.neighbours({{"micro_batch", std::int64_t{2}}, {"gradient_accumulation_steps", std::int64_t{4}}})),
      (std::vector<std::string>{"micro_batch=1 gradient_accumulation_steps=8",
                                "micro_batch=4 gradient_accumulation_steps=2"}));
}

TEST(Neighbours, OfAPointOutsideTheListAreInTheSpace) {
  const space::Space space = space_from(R"({"a": [10, 20], "b": [1, 2]})");
  EXPECT_EQ(texts(space.neighbours({{"a", std::int64_t{15}}, {"b", std::int64_t{2}}})),
            (std::vector<std::string>{"a=10 b=2", "a=20 b=2"}));
}

}  // namespace krigtune::neighbours_test
