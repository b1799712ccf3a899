#include "report/whole_run_text.h"

#include <gtest/gtest.h>

namespace krigtune::whole_run_text_test {

constexpr double kHour = 3600.0;
constexpr double kDay = 24.0 * kHour;

TEST(WholeRunText, NamesThePartsThatThereAre) {
  fleet::WholeRun whole;
  whole.steps_s = whole.wall_s = 4.0 * kDay;
  EXPECT_EQ(report::whole_run_parts(whole), "steps 4.0 d");
  EXPECT_EQ(report::checkpoint_sentence(whole), "");
  EXPECT_EQ(report::energy_text(whole), "");
  whole.evaluation_s = 5.0 * kHour;
  whole.checkpoints_s = 0.75 * kHour;
  whole.failures = 0.31;
  whole.failures_s = 0.5 * kHour;
  whole.energy_kwh = 12345.0;
  EXPECT_EQ(report::whole_run_parts(whole),
            "steps 4.0 d, evaluation and data 5.0 h, checkpoints 45 min, 0.3 failures 30 min");
  whole.failures = 419.2;
  EXPECT_NE(report::whole_run_parts(whole).find(", 419 failures "), std::string::npos);
  EXPECT_EQ(report::energy_text(whole), "12,300 kWh");
}

TEST(WholeRunText, NamesABetterIntervalOnlyIfItSavesMoreThanOnePerCent) {
  fleet::WholeRun whole;
  whole.wall_s = 102.0;
  whole.interval_s = 600.0;
  EXPECT_EQ(report::checkpoint_sentence(whole), "a checkpoint every 10 min 00 s");
  whole.best_interval_s = 1800.0;
  whole.best_wall_s = 101.5;
  EXPECT_EQ(report::checkpoint_sentence(whole), "a checkpoint every 10 min 00 s");
  whole.best_wall_s = 99.96;
  EXPECT_EQ(
      report::checkpoint_sentence(whole),
      "a checkpoint every 10 min 00 s; every 30 min 00 s would be best (Young 1974, Daly 2006), and save 2.0 % of "
      "the time");
  whole.interval_s = 1800.0;
  EXPECT_EQ(report::checkpoint_sentence(whole),
            "a checkpoint every 30 min 00 s, which is best (Young 1974, Daly 2006)");
}

TEST(WholeRunText, SaysWhatIsMissingIfOnlyStepsTakeTime) {
  fleet::WholeRun whole;
  whole.steps_s = whole.wall_s = 10.0 * kDay;
  const std::vector<std::string> lines = report::whole_run_lines(whole, {"", "80 % of 9 published runs", 9, 0.9, 1.2});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "10 d (9.0 to 12, as 80 % of 9 published runs took 0.90 to 1.20 times as long as predicted)");
  EXPECT_EQ(lines[1], "steps 10 d");
  EXPECT_NE(lines[2].find("come on top"), std::string::npos);
}

}  // namespace krigtune::whole_run_text_test
