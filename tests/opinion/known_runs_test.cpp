// The runs that the program ships are those of the published table. `test_opinion_known_runs --write-runs FILE` writes
// src/opinion/published_runs.json.
#include "opinion/known_runs.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "cost/time/step_cost.h"
#include "published_runs.h"
#include "shipped_runs.h"

namespace krigtune {
namespace {

std::vector<accuracy::PublishedRun> shipped() {
  std::vector<accuracy::PublishedRun> runs = accuracy::published_runs(KRIGTUNE_EXPERIMENTS_DATA);
  std::erase_if(runs, [](const accuracy::PublishedRun& run) { return !accuracy::is_shipped(run); });
  return runs;
}

TEST(KnownRuns, AreThoseOfTheTable) {
  const std::string wanted = accuracy::shipped_runs(accuracy::published_runs(KRIGTUNE_EXPERIMENTS_DATA));
  EXPECT_TRUE(wanted == read_text(KRIGTUNE_ROOT "/src/opinion/published_runs.json"))
      << "write it anew: test_opinion_known_runs --write-runs src/opinion/published_runs.json";
  EXPECT_TRUE(wanted == opinion::kKnownRuns) << "build again";
}

TEST(KnownRuns, ArePredictedAsTheTableIs) {
  const std::vector<accuracy::PublishedRun> table = shipped();
  const std::vector<opinion::KnownRun> known = opinion::known_runs();
  ASSERT_EQ(known.size(), table.size());
  EXPECT_GT(known.size(), 500U);
  for (std::size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(known[i].id, table[i].id);
    EXPECT_EQ(known[i].step_time_s, table[i].seconds);
    EXPECT_EQ(known[i].subject, opinion::subject_of(table[i].workload, table[i].cluster)) << known[i].id;
    const double shipped_s =
        cost::StepCostModel(known[i].workload(), known[i].cluster())(known[i].configuration).step_time_s;
    const double table_s = cost::StepCostModel(table[i].workload, table[i].cluster)(table[i].configuration).step_time_s;
    EXPECT_EQ(shipped_s, table_s) << known[i].id;
  }
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--write-runs") {
    krigtune::write_atomically(
        argv[2], krigtune::accuracy::shipped_runs(krigtune::accuracy::published_runs(KRIGTUNE_EXPERIMENTS_DATA)));
    return 0;
  }
  return RUN_ALL_TESTS();
}
