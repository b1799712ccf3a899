#include "space/parallel_layout.h"

#include <gtest/gtest.h>

#include <string>

#include "space/spaces.h"
#include "space/well_known.h"
#include "user_error.h"

namespace krigtune::parallel_layout_test {

using space::ParallelLayout;
using space::RankSplit;

// Every rank of a job has a place in each of its groups. Counts the ranks that share a place, one by one.
TEST(ParallelLayout, CountsWhatNumberingTheRanksCounts) {
  for (const std::int64_t ranks : {1, 8, 12, 64}) {
    for (const std::int64_t tensor : {1, 2, 3}) {
      for (const std::int64_t pipeline : {1, 2, 4}) {
        for (const std::int64_t context : {1, 2}) {
          std::int64_t first_of_replicas = 0;
          std::int64_t first_of_holders = 0;
          for (std::int64_t rank = 0; rank < ranks; ++rank) {  // tensor varies fastest, then context, data, pipeline
            const bool first_tensor = rank % tensor == 0;
            const bool first_context = rank / tensor % context == 0;
            const bool first_stage = rank < ranks / pipeline;
            first_of_holders += first_tensor && first_stage ? 1 : 0;
            first_of_replicas += first_tensor && first_context && first_stage ? 1 : 0;
          }
          const space::Configuration configuration = {{space::kTensorParallel, tensor},
                                                      {space::kPipelineParallel, pipeline},
                                                      {space::kContextParallel, context}};
          const auto layout = ParallelLayout::of(ranks, configuration);
          EXPECT_EQ(layout.has_value(), ranks % (tensor * pipeline * context) == 0);
          EXPECT_EQ(space::ranks_of_replica(configuration), tensor * pipeline * context);
          if (!layout) continue;
          EXPECT_EQ(layout->data(), first_of_replicas);
          EXPECT_EQ(layout->holders(), first_of_holders);
          EXPECT_EQ(layout->ways(space::kTensorParallel), tensor);
          EXPECT_EQ(layout->ways(space::kContextParallel), context);
          EXPECT_EQ(space::data_parallel_ranks(ranks, configuration), layout->data());
        }
      }
    }
  }
}

TEST(ParallelLayout, GroupsOfDataRanksLeaveAsManyReplicas) {
  ParallelLayout layout(16);
  EXPECT_TRUE(layout.split(space::kTensorParallel, 2));
  EXPECT_TRUE(layout.split(space::kContextParallel, 4));
  EXPECT_EQ(layout.data(), 2);
  EXPECT_EQ(layout.left_for(space::kExpertParallel), 8)
      << "ranks that share a sequence hold the same experts otherwise";
  EXPECT_FALSE(layout.split(space::kExpertParallel, 16));
  EXPECT_TRUE(layout.split(space::kExpertParallel, 8));
  EXPECT_EQ(layout.data(), 2);
  EXPECT_EQ(layout.holders(), 8);
  EXPECT_EQ(layout.ways(space::kExpertParallel), 8);
}

TEST(ParallelLayout, IsUnchangedByAKindThatDoesNotDivide) {
  ParallelLayout layout(12);
  EXPECT_FALSE(layout.split(space::kTensorParallel, 8));
  EXPECT_FALSE(layout.split(space::kTensorParallel, 0));
  EXPECT_EQ(layout.data(), 12);
  EXPECT_EQ(layout.ways(space::kTensorParallel), 1);
  EXPECT_TRUE(layout.split(space::kTensorParallel, 4));
  EXPECT_EQ(layout.left_for(space::kPipelineParallel), 3);
}

// What groups of data ranks must divide depends on the framework, so that no value of theirs is refused here.
TEST(ParallelLayout, OfAConfigurationLooksOnlyAtWhatDividesTheRanks) {
  EXPECT_EQ(space::data_parallel_ranks(8, {{space::kExpertParallel, std::int64_t{3}}}), 8);
  EXPECT_EQ(space::data_parallel_ranks(8, {{space::kExpertParallel, std::string("most")}}), 8);
  const space::Configuration words = {{space::kTensorParallel, std::string("most")}};
  EXPECT_NE(user_error_of([&] { space::data_parallel_ranks(8, words); }), "no error");
  EXPECT_EQ(space::ranks_of_replica({{space::kTensorParallel, std::int64_t{0}}}), 1);
}

// A new row with `splits_ranks` needs no further line to be counted, by lattices and by conditions too.
TEST(ParallelLayout, HasEveryKindOfTheTable) {
  std::size_t groups = 0;
  std::size_t divisors = 0;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    EXPECT_EQ(space::splits_ranks(known.name), known.splits_ranks != RankSplit::kNone) << known.name;
    if (known.splits_ranks == RankSplit::kNone) continue;
    EXPECT_STREQ(known.unit, "ranks") << known.name;
    EXPECT_EQ(space::rank_groups().at(groups++).parameter, known.name);
    const bool divides = known.splits_ranks != RankSplit::kDataRanks;
    EXPECT_EQ(space::divides_ranks(known.name), divides) << known.name;
    divisors += divides ? 1 : 0;
    const space::Configuration two = {{known.name, std::int64_t{2}}};
    EXPECT_EQ(space::data_parallel_ranks(8, two), divides ? 4 : 8) << known.name;
    const std::string parameters = R"({")" + std::string(known.name) + R"(": [1, 2, 3]})";
    EXPECT_EQ(space_from(parameters, {.ranks = 8}).count(), divides ? 2 : 3) << "3 does not divide 8: " << known.name;
    EXPECT_EQ(constrained(parameters, {"dp == 4"}, {.ranks = 8}).count(), divides ? 1 : 0) << known.name;
    EXPECT_EQ(space::known_facts().front().meaning.find(known.name) != std::string::npos, divides) << known.name;
  }
  EXPECT_EQ(space::rank_groups().size(), groups);
  EXPECT_EQ(space::rank_divisors().size(), divisors);
  EXPECT_GE(groups, 4U);
  EXPECT_FALSE(space::splits_ranks("tp")) << "another name: with_usual_names translates it";
}

}  // namespace krigtune::parallel_layout_test
