#include "jobs/session/metric_unit.h"

#include <gtest/gtest.h>

namespace krigtune::metric_unit_test {

TEST(MetricUnit, StandsBehindTheNumberOrBeforeIt) {
  EXPECT_EQ(jobs::unit_in("([0-9.]+) tok/s"), "tok/s");
  EXPECT_EQ(jobs::unit_in("iter \\d+ \\| (?:loss|ppl) [0-9.]+ \\| ([0-9.]+)\\s*tok/s"), "tok/s");
  EXPECT_EQ(jobs::unit_in("p99 ([0-9.]+)ms"), "ms");
  EXPECT_EQ(jobs::unit_in("tokens/s ([0-9.]+)"), "tokens/s");
  EXPECT_EQ(jobs::unit_in("samples/s:\\s*([0-9.]+)"), "samples/s");
  EXPECT_EQ(jobs::unit_in("samples/s ?([0-9.]+)"), "") << "only plain blanks are passed over";
  EXPECT_EQ(jobs::unit_in("\\(fast\\) samples/s=([0-9.]+), loss"), "samples/s");
  EXPECT_EQ(jobs::unit_in("MFU ([0-9.]+)%"), "%");
}

TEST(MetricUnit, IsNotANameOrAnythingElse) {
  EXPECT_EQ(jobs::unit_in("val_loss ([0-9.]+)"), "");
  EXPECT_EQ(jobs::unit_in("loss ([0-9.]+) lr"), "");
  EXPECT_EQ(jobs::unit_in("([0-9.]+)"), "");
  EXPECT_EQ(jobs::unit_in("loss: ([0-9.]+) | "), "");
  EXPECT_EQ(jobs::unit_in("s ([0-9.]+)"), "");
  EXPECT_EQ(jobs::unit_in("a/very_long_word_that_is_no_unit ([0-9.]+)"), "");
  EXPECT_EQ(jobs::unit_in("(unclosed"), "");
  EXPECT_EQ(jobs::unit_in(""), "");
}

}  // namespace krigtune::metric_unit_test
