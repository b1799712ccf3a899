// Which nodes of an allocation a trial gets.
#include "executor/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "user_error.h"

namespace krigtune::allocation_test {
namespace {

using executor::Allocation;
using testing::ElementsAre;
using testing::HasSubstr;

Allocation::Variables variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

Allocation four_nodes() {
  return Allocation::from(variables({{"SLURM_JOB_ID", "12"},
                                     {"SLURM_JOB_NODELIST", "n[1-4]"},
                                     {"SLURM_JOB_CPUS_PER_NODE", "16(x4)"},
                                     {"SLURM_GPUS_ON_NODE", "8"}}),
                          0);
}

trial::TrialNeeds needs(int nodes, int gpus, int ranks) { return {ranks, nodes, gpus, 60.0}; }

TEST(Allocation, IsReadFromSlurmsVariables) {
  const Allocation allocation = four_nodes();
  ASSERT_EQ(allocation.nodes().size(), 4u);
  EXPECT_EQ(allocation.nodes()[3].name, "n4");
  EXPECT_EQ(allocation.nodes()[3].cores, 16);
  EXPECT_EQ(allocation.nodes()[3].gpus, 8);
  EXPECT_THAT(user_error_of([] { Allocation::from(variables({}), 0); }), HasSubstr("no SLURM_JOB_ID"));
}

TEST(Allocation, FillsANodeBeforeItBreaksAnother) {
  Allocation allocation = four_nodes();
  const auto half = allocation.choose(needs(1, 4, 4), 1).value();
  EXPECT_THAT(half.nodes, ElementsAre("n1"));
  EXPECT_EQ(half.cores, 8);  // half of the node
  allocation.take(half);
  EXPECT_THAT(allocation.choose(needs(1, 4, 4), 1)->nodes, ElementsAre("n1"));
  EXPECT_THAT(allocation.choose(needs(3, 8, 24), 1)->nodes, ElementsAre("n2", "n3", "n4"));
  EXPECT_FALSE(allocation.choose(needs(4, 8, 32), 1));
  allocation.give_back(half);
  EXPECT_TRUE(allocation.choose(needs(4, 8, 32), 1));
}

TEST(Allocation, HasAsManyHalvesAsThereAre) {
  Allocation allocation = four_nodes();
  int begun = 0;
  while (const auto share = allocation.choose(needs(1, 4, 4), 1)) {
    allocation.take(*share);
    ++begun;
  }
  EXPECT_EQ(begun, 8);
}

TEST(Allocation, DividesCoresWhereThereAreNoGpus) {
  Allocation allocation = four_nodes();
  const auto share = allocation.choose(needs(1, 0, 4), 2).value();
  EXPECT_EQ(share.cores, 8);
  EXPECT_EQ(allocation.choose(needs(1, 0, 99), 1)->cores, 16);  // more ranks than cores: they share the cores
}

TEST(Allocation, RefusesWhatNeverFits) {
  Allocation allocation = four_nodes();
  EXPECT_THAT(user_error_of([&] { allocation.choose(needs(5, 8, 40), 1); }),
              HasSubstr("needs 5 nodes with 8 GPUs each; 4 of the 4 nodes"));
  EXPECT_THAT(user_error_of([&] { allocation.choose(needs(1, 9, 9), 1); }), HasSubstr("0 of the 4 nodes"));
  allocation.note_broken("n2");
  EXPECT_THAT(allocation.choose(needs(3, 8, 24), 1)->nodes, ElementsAre("n1", "n3", "n4"));
  EXPECT_NE(user_error_of([&] { allocation.choose(needs(4, 8, 32), 1); }), "no error");
}

}  // namespace
}  // namespace krigtune::allocation_test
