#include <gtest/gtest.h>

#include <numeric>

#include "core/files.h"
#include "diagnose/log_parts.h"
#include "user_error.h"

namespace krigtune::log_test {

using diagnose::Limit;

// 60 steps of 100 ms; every tenth takes 400 ms.
std::vector<double> with_evaluations() {
  std::vector<double> seconds(60, 0.1);
  for (std::size_t i = 9; i < seconds.size(); i += 10) seconds[i] = 0.4;
  return seconds;
}

TEST(Logs, StepsThatTakeLongerNowAndThenHaveTheirShareAndPeriod) {
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({with_evaluations()}, {});
  EXPECT_NEAR(parts.span_s, 54 * 0.1 + 6 * 0.4, 1e-12);
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(parts);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts.front().limit, Limit::kLongSteps);
  EXPECT_NEAR(verdicts.front().share, 6 * 0.3 / 7.8, 1e-9);
  EXPECT_NE(verdicts.front().sentence.find("6 take longer than 1.5 times the median, every 10 or so"),
            std::string::npos)
      << verdicts.front().sentence;
}

TEST(Logs, LongStepsWithoutAPeriodAreNotGivenOne) {
  std::vector<double> seconds(60, 0.1);
  for (const std::size_t at : {3, 4, 20, 55}) seconds[at] = 0.9;
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(diagnose::parts_of_log({seconds}, {}));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_NE(verdicts.front().sentence.find("without a period"), std::string::npos) << verdicts.front().sentence;
}

TEST(Logs, EvenStepsLimitNothing) {
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({std::vector<double>(20, 0.25)}, {});
  EXPECT_TRUE(diagnose::verdicts_of(parts).empty());
  ASSERT_FALSE(parts.remarks.empty());
  EXPECT_EQ(parts.remarks.front(), "20 steps: median 250.0 ms, from 250.0 ms to 250.0 ms for 8 of 10");
}

TEST(Logs, ATrendIsSaid) {
  std::vector<double> seconds(60);
  std::iota(seconds.begin(), seconds.end(), 100.0);
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({seconds}, {});
  ASSERT_EQ(parts.remarks.size(), 2U);
  EXPECT_NE(parts.remarks.back().find("slower from the first third to the last"), std::string::npos);
}

// Recorded: tests/deepspeed/deepspeed_outputs.
TEST(Logs, DeepSpeedsBreakdownIsReadFromARealLog) {
  diagnose::PrintedBreakdown printed;
  std::istringstream lines(read_text(KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs/success.txt"));
  for (std::string line; std::getline(lines, line);) printed.take(line);
  ASSERT_FALSE(printed.is_empty());
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({}, printed);
  double sum = 0.0;
  for (const diagnose::Part& part : parts.parts) sum += part.seconds;
  EXPECT_NEAR(sum, parts.span_s, 1e-12);
  EXPECT_NEAR(parts.span_s, printed.seconds("fwd") + printed.seconds("bwd") + printed.seconds("step"), 1e-12);
  EXPECT_GT(parts.span_s, 0.0);
}

TEST(Logs, TheReductionIsTakenOutOfTheBackwardPass) {
  diagnose::PrintedBreakdown printed;
  printed.take("[Rank 0] time (ms) | fwd: 100 | bwd: 300 | bwd_inner: 120 | bwd_allreduce: 180 | step: 20");
  printed.take("[Rank 0] time (ms) | fwd_microstep: 1 | bwd_microstep: 2 | bwd_allreduce_microstep: 1");
  printed.take("time (ms) | optimizer_step: 3.2");
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(diagnose::parts_of_log({}, printed));
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts.front().limit, Limit::kDataCommunication);
  EXPECT_NEAR(verdicts.front().share, 180.0 / 420.0, 1e-9);
  EXPECT_EQ(verdicts.back().limit, Limit::kCompute);
  EXPECT_NEAR(verdicts.back().share, 220.0 / 420.0, 1e-9);
}

TEST(Logs, WithNeitherStepsNorABreakdownTheySayNothing) {
  EXPECT_EQ(
      user_error_of([] {
        diagnose::parts_of_log({{0.1, 0.2}}, {});
      }),
      "the log tells of 2 steps, and has no breakdown of DeepSpeed's; it takes three at least: look with krigtune "
      "measure --log what is found in it");
}

}  // namespace krigtune::log_test
