// One test for each rule on knobs without effect, through Space::complete.
#include <gtest/gtest.h>

#include "space/spaces.h"

namespace krigtune::canonical_test {

constexpr const char* kKnobs = R"({
  "zero_stage": [0, 1, 2, 3],
  "reduce_bucket_size": [100, 200, 400, 800],
  "allgather_bucket_size": [800, 400, 200, 100],
  "overlap_comm": [false, true],
  "stage3_prefetch_bucket_size": [10, 20],
  "stage3_max_live_parameters": [30, 40]
})";

space::Configuration completed(const space::Space& space, std::int64_t stage) {
  space::Configuration c{{"zero_stage", stage},
                         {"reduce_bucket_size", std::int64_t{200}},
                         {"allgather_bucket_size", std::int64_t{200}},
                         {"overlap_comm", true},
                         {"stage3_prefetch_bucket_size", std::int64_t{20}},
                         {"stage3_max_live_parameters", std::int64_t{40}}};
  EXPECT_EQ(space.complete(c), space::Exclusion::kNone);
  return c;
}

TEST(Canonical, StageThreeKnobsTakeTheirFirstValueBelowStageThree) {
  const space::Space space = space_from(kKnobs, {.ranks = 2});
  for (const std::int64_t stage : {0, 1, 2}) {
    EXPECT_EQ(completed(space, stage).integer("stage3_prefetch_bucket_size", 0), 10) << stage;
    EXPECT_EQ(completed(space, stage).integer("stage3_max_live_parameters", 0), 30) << stage;
  }
  EXPECT_EQ(completed(space, 3).integer("stage3_prefetch_bucket_size", 0), 20);
  EXPECT_EQ(completed(space, 3).integer("stage3_max_live_parameters", 0), 40);
}

TEST(Canonical, GatherBucketsTakeTheirFirstValueAtStagesZeroAndThree) {
  const space::Space space = space_from(kKnobs, {.ranks = 2});
  for (const std::int64_t stage : {0, 3}) {
    EXPECT_EQ(completed(space, stage).integer("allgather_bucket_size", 0), 800) << stage;
  }
  for (const std::int64_t stage : {1, 2}) {
    EXPECT_EQ(completed(space, stage).integer("allgather_bucket_size", 0), 200) << stage;
  }
}

TEST(Canonical, CommunicationMeansNothingOnOneRank) {
  const space::Space space = space_from(kKnobs, {.ranks = 1});
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const space::Configuration c = completed(space, stage);
    EXPECT_EQ(c.integer("reduce_bucket_size", 0), 100) << stage;
    EXPECT_EQ(c.integer("allgather_bucket_size", 0), 800) << stage;
    EXPECT_FALSE(c.boolean("overlap_comm", true)) << stage;
    EXPECT_EQ(c.integer("stage3_prefetch_bucket_size", 0), 10) << stage;
  }
  const space::Configuration two_ranks = completed(space_from(kKnobs, {.ranks = 2}), 1);
  EXPECT_EQ(two_ranks.integer("reduce_bucket_size", 0), 200);
  EXPECT_TRUE(two_ranks.boolean("overlap_comm", false));
}

TEST(Canonical, OneReplicaOverAllRanksCommunicatesNoGradients) {
  const space::Space space =
      space_from(R"({"tensor_parallel": [1, 4], "reduce_bucket_size": [100, 200]})", {.ranks = 4});
  EXPECT_EQ(space.count(), 3);  // dp = 4: both buckets; dp = 1: one
}

TEST(Canonical, BucketsThatHoldAllParametersAreTheSmallestThatDoes) {
  const space::Space space = space_from(kKnobs, {.ranks = 2, .parameter_count = 250});
  const auto bucket = [&](const char* name, std::int64_t value) {
    space::Configuration c{{"zero_stage", std::int64_t{1}}, {name, value}};
    EXPECT_EQ(space.complete(c), space::Exclusion::kNone);
    return c.integer(name, 0);
  };
  for (const char* name : {"reduce_bucket_size", "allgather_bucket_size"}) {
    EXPECT_EQ(bucket(name, 200), 200) << "smaller than the model: another bucket";
    EXPECT_EQ(bucket(name, 400), 400);
    EXPECT_EQ(bucket(name, 800), 400);
    EXPECT_EQ(bucket(name, 250), 400) << "outside the list";
    EXPECT_EQ(bucket(name, 249), 249) << "outside the list and smaller than the model";
  }
}

TEST(Canonical, ABucketOutsideTheListStaysWhereTheListHasNoneThatHoldsAll) {
  const space::Space space = space_from(kKnobs, {.ranks = 2, .parameter_count = 1000});
  space::Configuration c{{"reduce_bucket_size", std::int64_t{5000}}};
  EXPECT_EQ(space.complete(c), space::Exclusion::kNone);
  EXPECT_EQ(c.integer("reduce_bucket_size", 0), 5000);
}

TEST(Canonical, TouchesOnlyParametersOfTheSpace) {
  const space::Space space = space_from(R"({"zero_stage": [0, 1]})", {.ranks = 1});
  space::Configuration c{{"zero_stage", std::int64_t{0}}, {"allgather_bucket_size", std::int64_t{7}}};
  EXPECT_EQ(space.complete(c), space::Exclusion::kNone);
  EXPECT_EQ(c.integer("allgather_bucket_size", 0), 7);
}

TEST(Canonical, AnAbsentStageIsStageZero) {
  const space::Space space =
      space_from(R"({"allgather_bucket_size": [1, 2], "reduce_bucket_size": [1, 2]})", {.ranks = 2});
  EXPECT_EQ(space.count(), 2);
}

}  // namespace krigtune::canonical_test
