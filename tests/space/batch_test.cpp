#include <gtest/gtest.h>

#include <limits>

#include "space/parallel_layout.h"
#include "space/spaces.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::batch_test {

TEST(BatchIdentity, EachFactorFollowsFromTheOthers) {
  for (const std::int64_t micro_batch : {1, 3, 8}) {
    for (const std::int64_t dp : {1, 2, 6}) {
      for (const std::int64_t steps : {1, 5, 16}) {
        const std::int64_t batch = space::sequences_of_step(micro_batch, dp, steps);
        EXPECT_EQ(space::accumulation_steps(batch, micro_batch, dp), steps);
        EXPECT_EQ(space::accumulation_steps(batch, steps, dp), micro_batch);
      }
    }
  }
}

TEST(BatchIdentity, HasNoStepsWhereAFactorDoesNotDivide) {
  EXPECT_EQ(space::accumulation_steps(32, 3, 2), std::nullopt);
  EXPECT_EQ(space::accumulation_steps(32, 4, 3), std::nullopt);
  EXPECT_EQ(space::accumulation_steps(32, 4, 16), std::nullopt) << "each divides, their product does not";
  EXPECT_EQ(space::accumulation_steps(32, 0, 2), std::nullopt);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(space::accumulation_steps(8, kMost, kMost), std::nullopt) << "no product is made";
}

space::Configuration split(std::int64_t tensor, std::int64_t pipeline, std::int64_t context = 1) {
  return {{space::kTensorParallel, tensor}, {space::kPipelineParallel, pipeline}, {space::kContextParallel, context}};
}

TEST(BatchIdentity, RanksSplitIntoWholeReplicasOrNotAtAll) {
  EXPECT_EQ(space::data_parallel_ranks(16, split(2, 4)), 2);
  EXPECT_EQ(space::data_parallel_ranks(12, split(3, 1)), 4);
  EXPECT_EQ(space::data_parallel_ranks(12, split(8, 1)), std::nullopt);
  EXPECT_EQ(space::data_parallel_ranks(12, split(4, 2)), std::nullopt);
  EXPECT_EQ(space::data_parallel_ranks(12, split(0, 1)), std::nullopt);
  EXPECT_EQ(space::data_parallel_ranks(16, split(2, 2, 2)), 2);
  EXPECT_EQ(space::data_parallel_ranks(12, split(2, 2, 2)), std::nullopt);
  EXPECT_EQ(space::data_parallel_ranks(12, {}), 12);
}

// Spaces complete configurations with integers, conditions read real numbers, and lattices are counted with bounds. All
// three must agree.
TEST(BatchIdentity, IsThatOfSpacesAndOfTheirConditions) {
  const std::string parameters = R"({"micro_batch": [1, 2, 3, 4], "tensor_parallel": [1, 2, 3, 4],
                                     "pipeline_parallel": [1, 2, 5], "context_parallel": [1, 2, 3]})";
  const space::JobFacts facts{.ranks = 8, .train_batch_size = 48};
  const std::vector<space::Configuration> all = all_of(space_from(parameters, facts));
  std::int64_t expected = 0;
  for (const std::int64_t tensor : {1, 2, 3, 4}) {
    for (const std::int64_t pipeline : {1, 2, 5}) {
      for (const std::int64_t context : {1, 2, 3}) {
        const auto dp = space::data_parallel_ranks(8, split(tensor, pipeline, context));
        for (const std::int64_t micro : {1, 2, 3, 4})
          expected += dp && space::accumulation_steps(48, micro, *dp) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(all.size()), expected);
  for (const space::Configuration& c : all) {
    const auto dp = space::data_parallel_ranks(8, c);
    ASSERT_TRUE(dp) << c.text();
    EXPECT_EQ(space::sequences_of_step(c.integer(space::kMicroBatch, 0), *dp, c.integer(space::kAccumulation, 0)), 48)
        << c.text();
  }
  const space::Space asked =
      constrained(parameters, {"micro_batch * dp * gradient_accumulation_steps == train_batch_size"}, facts);
  EXPECT_EQ(asked.count(), expected);
}

space::Parameter listed(const std::string& name, const std::vector<std::int64_t>& values) {
  space::Parameter parameter{name, {}};
  for (const std::int64_t value : values) parameter.values.emplace_back(value);
  return parameter;
}

// Other names of the same parameters (tp, mbs, ...) divide ranks and batch as the usual ones do, also in constraints.
TEST(BatchIdentity, HoldsUnderOtherNames) {
  for (const bool has_steps : {false, true}) {
    const auto space_of = [&](const char* tensor, const char* micro, const char* steps) {
      std::vector<space::Parameter> parameters = {listed(tensor, {1, 2, 4, 16}), listed(micro, {1, 2, 3, 8})};
      if (has_steps) parameters.push_back(listed(steps, {1, 2, 4, 8}));
      return space::Space(parameters, {.ranks = 8, .train_batch_size = 32},
                          {space::Expression::parse("dp >= 2"), space::Expression::parse("tensor_parallel != 2")});
    };
    const space::Space usual = space_of("tensor_parallel", "micro_batch", "gradient_accumulation_steps");
    const space::Space other = space_of("tp", "mbs", "ga");
    EXPECT_GT(usual.count(), 0);
    EXPECT_EQ(other.count(), usual.count());
    std::vector<std::string> expected;
    usual.for_each([&](const space::Configuration& configuration) {
      expected.push_back(configuration.text());
      return true;
    });
    std::size_t i = 0;
    other.for_each([&](const space::Configuration& configuration) {
      EXPECT_TRUE(other.contains(configuration));
      EXPECT_EQ(space::with_usual_names(configuration).value().text(), expected.at(i++));
      return true;
    });
    EXPECT_EQ(i, expected.size());
  }
}

}  // namespace krigtune::batch_test
