#include "space/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.h"
#include "space/spaces.h"

namespace krigtune::space_test {

std::int64_t excluded(const space::Space& space, space::Exclusion reason) {
  for (const space::ExclusionCount& excluded : space.exclusions()) {
    if (excluded.reason == reason) return excluded.count;
  }
  return -1;
}

// The effect of a configuration of quickstart_space, computed by hand: stage, micro-batch, elements in a reduce bucket,
// elements in a gather bucket (none at stages 0 and 3), overlap.
using Meaning = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;

Meaning meaning_of(const space::Configuration& c, std::int64_t parameter_count) {
  const std::int64_t stage = c.integer("zero_stage", -1);
  const bool gathers = stage == 1 || stage == 2;
  return {stage, c.integer("micro_batch", -1), std::min(parameter_count, c.integer("reduce_bucket_size", -1)),
          gathers ? std::min(parameter_count, c.integer("allgather_bucket_size", -1)) : 0,
          c.boolean("overlap_comm", false)};
}

TEST(Space, HoldsEachMeaningOnceAndMissesNone) {
  for (const std::int64_t parameter_count : {5'000'000, 200'000, 50'000, 5'000}) {
    const space::Space space = quickstart_space(parameter_count);
    std::set<Meaning> expected;
    for (const space::Configuration& point : lattice_of(space.parameters())) {
      expected.insert(meaning_of(point, parameter_count));
    }
    std::set<Meaning> visited;
    for (const space::Configuration& c : all_of(space)) {
      EXPECT_TRUE(visited.insert(meaning_of(c, parameter_count)).second) << "twice: " << c.text();
    }
    EXPECT_EQ(visited, expected) << parameter_count;
    EXPECT_EQ(space.count(), static_cast<std::int64_t>(expected.size()));
  }
}

TEST(Space, OfTheQuickstartHasMoreThan200Configurations) {
  EXPECT_EQ(quickstart_space().lattice_count(), 480);
  EXPECT_EQ(quickstart_space().count(), 2 * 40 + 2 * 120);  // stages 0, 3: no gather buckets; stages 1, 2: all
}

TEST(Space, CompletesEveryLatticePointToTheOneThatMeansTheSame) {
  constexpr std::int64_t kParameters = 200'000;
  const space::Space space = quickstart_space(kParameters);
  for (const space::Configuration& point : lattice_of(space.parameters())) {
    space::Configuration completed = point;
    ASSERT_EQ(space.complete(completed), space::Exclusion::kNone);
    EXPECT_EQ(meaning_of(completed, kParameters), meaning_of(point, kParameters)) << point.text();
    EXPECT_TRUE(space.contains(completed)) << completed.text();
    space::Configuration again = completed;
    ASSERT_EQ(space.complete(again), space::Exclusion::kNone);
    EXPECT_EQ(again, completed);
  }
}

TEST(Space, VisitsInLatticeOrderTheLastParameterFastestAndStops) {
  const space::Space space = space_from(R"({"a": [1, 2], "b": [true, false], "c": ["x", "y"]})");
  std::vector<std::string> seen;
  space.for_each([&](const space::Configuration& c) {
    seen.push_back(c.text());
    return seen.size() < 5;
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"a=1 b=true c=x", "a=1 b=true c=y", "a=1 b=false c=x", "a=1 b=false c=y",
                                            "a=2 b=true c=x"}));
}

TEST(Batch, DerivesAccumulationAndAppendsItLast) {
  const space::Space space =
      space_from(R"({"micro_batch": [1, 2, 4], "tensor_parallel": [1, 2]})", {.ranks = 4, .train_batch_size = 16});
  EXPECT_EQ(space.columns(),
            (std::vector<std::string>{"micro_batch", "tensor_parallel", "gradient_accumulation_steps"}));
  for (const space::Configuration& c : all_of(space)) {
    const std::int64_t dp = 4 / c.integer("tensor_parallel", 1);
    EXPECT_EQ(c.integer("micro_batch", 0) * dp * c.integer("gradient_accumulation_steps", 0), 16) << c.text();
    EXPECT_EQ((c.end() - 1)->first, "gradient_accumulation_steps");
  }
  EXPECT_EQ(space.count(), 6);
}

TEST(Batch, ExcludesWhatDoesNotDivide) {
  const space::Space space =
      space_from(R"({"micro_batch": [1, 2, 3, 4, 8, 16]})", {.ranks = 2, .train_batch_size = 16});
  EXPECT_EQ(space.count(), 4);
  EXPECT_EQ(excluded(space, space::Exclusion::kBatchNotDivisible), 2);  // 3, and 16 on two ranks
  EXPECT_STREQ(space::to_string(space::Exclusion::kBatchNotDivisible), "batch not divisible");
  space::Configuration point{{"micro_batch", std::int64_t{3}}};
  EXPECT_EQ(space.complete(point), space::Exclusion::kBatchNotDivisible);
  EXPECT_EQ(point.text(), "micro_batch=3");
}

TEST(Batch, ExcludesRanksThatDoNotDivide) {
  const space::Space space =
      space_from(R"({"tensor_parallel": [1, 2, 4], "pipeline_parallel": [1, 2, 3]})", {.ranks = 4});
  // tp * pp must be 1, 2 or 4 to divide 4, so 3 and 4 x 2 are excluded.
  EXPECT_EQ(space.count(), 5);
  EXPECT_EQ(excluded(space, space::Exclusion::kRanksNotDivisible), 4);
}

TEST(Batch, WithBothGivenKeepsTheIdentity) {
  const space::Space space = space_from(R"({"micro_batch": [1, 2, 4, 8], "gradient_accumulation_steps": [1, 2, 4, 8]})",
                                        {.ranks = 2, .train_batch_size = 16});
  EXPECT_EQ(space.count(), 4);
  EXPECT_EQ(excluded(space, space::Exclusion::kBatchMismatch), 12);
  EXPECT_EQ(space.columns().size(), 2U);
}

TEST(Batch, AddsNoAccumulationWithoutABatchSize) {
  const space::Space space = space_from(R"({"micro_batch": [1, 2, 3]})", {.ranks = 2});
  EXPECT_EQ(space.count(), 3);
  EXPECT_FALSE(all_of(space).front().has("gradient_accumulation_steps"));
}

TEST(Batch, CountsAnAbsentMicroBatchAsOne) {
  const space::Space space = space_from(R"({"zero_stage": [1]})", {.ranks = 2, .train_batch_size = 16});
  EXPECT_EQ(all_of(space).at(0).integer("gradient_accumulation_steps", 0), 8);
}

TEST(Batch, RefusesAStatedAccumulationThatContradicts) {
  const space::Space space = space_from(R"({"micro_batch": [1, 2]})", {.ranks = 2, .train_batch_size = 16});
  space::Configuration baseline{{"micro_batch", std::int64_t{2}}, {"gradient_accumulation_steps", std::int64_t{3}}};
  EXPECT_EQ(space.complete(baseline), space::Exclusion::kBatchMismatch);
  baseline.set("gradient_accumulation_steps", std::int64_t{4});
  EXPECT_EQ(space.complete(baseline), space::Exclusion::kNone);
}

TEST(Space, WithoutAWorkloadTakesNamesForNames) {
  const space::Space space =
      space_from(R"({"zero_stage": [0, 3], "allgather_bucket_size": [1, 2], "micro_batch": [0, 3]})",
                 {.ranks = 1, .train_batch_size = 16, .parameter_count = 1, .well_known = false});
  EXPECT_EQ(space.count(), 8);
  EXPECT_EQ(space.columns().size(), 3U);
}

TEST(Space, AsksAllRestrictions) {
  space::Space space = quickstart_space();
  space.restrict_to([](const space::Configuration& c) { return c.integer("zero_stage", 0) >= 2; });
  space.restrict_to([](const space::Configuration& c) { return c.integer("micro_batch", 0) <= 2; });
  EXPECT_EQ(space.count(), 20 + 60);
  EXPECT_EQ(excluded(space, space::Exclusion::kRestricted), 480 - 120);
  EXPECT_EQ(excluded(space, space::Exclusion::kNone), 120);
}

TEST(Space, HoldsWhatIsFixedEverywhereAndCountsWithIt) {
  const std::vector<space::Parameter> parameters = {
      {"tensor_parallel", {std::int64_t{1}, std::int64_t{2}}},
      {"micro_batch", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}}}};
  const space::JobFacts facts{.ranks = 4, .train_batch_size = 8, .fixed = {{"pipeline_parallel", std::int64_t{2}}}};
  const space::Space space(parameters, facts);
  std::int64_t count = 0;
  space.for_each([&](const space::Configuration& c) {
    ++count;
    const std::int64_t dp = 4 / (2 * c.integer("tensor_parallel", 0));
    EXPECT_EQ(c.integer("pipeline_parallel", 0), 2) << c.text();
    EXPECT_EQ(c.integer("gradient_accumulation_steps", 0), 8 / (dp * c.integer("micro_batch", 0))) << c.text();
    EXPECT_TRUE(space.contains(c));
    for (const space::Configuration& other : space.neighbours(c)) EXPECT_EQ(other.integer("pipeline_parallel", 0), 2);
    return true;
  });
  EXPECT_EQ(count, 6);
  EXPECT_EQ(space.count(), 6);
  EXPECT_EQ(space.columns().size(), 3U) << "and the accumulation";
  space::Configuration without{{"tensor_parallel", std::int64_t{1}}, {"micro_batch", std::int64_t{2}}};
  EXPECT_EQ(space.complete(without), space::Exclusion::kNone);
  EXPECT_TRUE(space.contains(without));
  EXPECT_THROW(space::Space(parameters, {.ranks = 4, .fixed = {{"micro_batch", std::int64_t{2}}}}), UserError);
}

TEST(Space, ContainsItsConfigurationsAndNothingElse) {
  const space::Space space = quickstart_space();
  const space::Configuration member = all_of(space).at(100);
  ASSERT_TRUE(space.contains(member));
  space::Configuration other = member;
  other.set("micro_batch", std::int64_t{3});
  EXPECT_FALSE(space.contains(other)) << "a value outside the list";
  other = member;
  other.set("gradient_accumulation_steps", std::int64_t{99});
  EXPECT_FALSE(space.contains(other)) << "a broken identity";
  other = member;
  other.set("lr", 0.1);
  EXPECT_FALSE(space.contains(other)) << "a name too many";
  EXPECT_FALSE(space.contains({})) << "names too few";
  for (const space::Configuration& point : lattice_of(space.parameters())) EXPECT_FALSE(space.contains(point));
}

TEST(Space, RefusesValuesThatNoRuleCouldRead) {
  EXPECT_THROW(space_from(R"({"zero_stage": ["auto"]})"), UserError);
  EXPECT_THROW(space_from(R"({"micro_batch": [0, 1]})"), UserError);
  EXPECT_THROW(space_from(R"({"tensor_parallel": [0.5]})"), UserError);
  EXPECT_THROW(space::Space({{"a", {true}}, {"a", {false}}}, {}), UserError);
  EXPECT_THROW(space::Space({{"a", {}}}, {}), UserError);
}

TEST(Space, OfHugeListsCountsItsLatticeWithoutOverflow) {
  std::vector<space::Parameter> parameters;
  std::vector<space::Value> values;
  for (std::int64_t i = 0; i < 1000; ++i) values.emplace_back(i);
  for (int i = 0; i < 7; ++i) parameters.push_back({"p" + std::to_string(i), values});
  EXPECT_EQ(space::Space(parameters, {}).lattice_count(), std::numeric_limits<std::int64_t>::max());
}

}  // namespace krigtune::space_test
