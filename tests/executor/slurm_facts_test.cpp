// What doctor prints about Slurm, from recorded output (22.05.8).
#include "executor/slurm_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace krigtune::slurm_facts_test {
namespace {

using testing::HasSubstr;

constexpr const char* kSinfo =
    "gpu*|up|infinite|3|idle|gpu:h100:8\n"
    "gpu*|up|infinite|1|down*|gpu:h100:8\n"
    "short|up|1:00:00|2|drain|(null)\n"
    "old|inact|infinite|5|mix|(null)\n";

TEST(SlurmFacts, AddsUpThePartitions) {
  const auto partitions = executor::parse_partitions(kSinfo);
  ASSERT_EQ(partitions.size(), 3u);
  EXPECT_EQ(partitions[0].name, "gpu");
  EXPECT_TRUE(partitions[0].is_default);
  EXPECT_EQ(partitions[0].nodes, 4);
  EXPECT_EQ(partitions[0].usable_nodes, 3);
  EXPECT_EQ(partitions[1].usable_nodes, 0);
  EXPECT_FALSE(partitions[2].is_up);
}

TEST(SlurmFacts, AreToldInOneLine) {
  executor::SlurmFacts facts;
  facts.version = "22.05.8";
  facts.partitions = executor::parse_partitions(kSinfo);
  executor::read_slurm_config(
      "Configuration data as of 2026-11-25T13:38:03\nAccountingStorageEnforce = associations,limits\n"
      "AccountingStorageType   = accounting_storage/slurmdbd\nMinJobAge               = 300 sec\n",
      facts);
  EXPECT_EQ(facts.min_job_age_s, 300.0);
  EXPECT_EQ(executor::facts_text(facts),
            "22.05.8; gpu* (3 of 4 nodes, gpu:h100:8, no time limit), short (0 of 2 nodes, at most 1:00:00), "
            "old (not up, 5 of 5 nodes, no time limit); accounting, enforced: associations,limits");
  EXPECT_THAT(executor::consequence_text(facts), HasSubstr("each trial is a job in the partition gpu"));
  facts.job = "12";
  facts.job_nodes = "n[1-2]";
  EXPECT_THAT(executor::consequence_text(facts), HasSubstr("inside job 12 on n[1-2]"));
  facts.complaint = "slurm_load_partitions: Unable to contact slurm controller (connect failure)";
  EXPECT_THAT(executor::facts_text(facts), HasSubstr("22.05.8, and the controller does not answer: slurm_load"));
}

TEST(SlurmFacts, KnowAMissingAccounting) {
  executor::SlurmFacts facts;
  executor::read_slurm_config("AccountingStorageEnforce = none\nAccountingStorageType = accounting_storage/none\n",
                              facts);
  EXPECT_FALSE(facts.has_accounting);
  EXPECT_EQ(facts.enforced, "");
}

}  // namespace
}  // namespace krigtune::slurm_facts_test
