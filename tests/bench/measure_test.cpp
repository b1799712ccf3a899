#include "programs/bench/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "krigtune/rng.h"

namespace krigtune::measure_test {

// Steps of given lengths on a clock that they move.
class FakeTraining {
 public:
  explicit FakeTraining(std::function<double(std::int64_t)> length_s) : length_s_(std::move(length_s)) {}

  bench::Measurement measure(const bench::MeasureOptions& options, const bench::OnStep& on_step = {}) {
    return krigtune::bench::measure([this] { return step(); }, clock_, options, on_step);
  }
  double now_s() const { return clock_.now_s(); }
  std::int64_t diverge_at = -1;
  std::function<bool(std::int64_t)> is_disturbed = [](std::int64_t) { return false; };

 private:
  engine::StepResult step() {
    const double length_s = length_s_(steps_);
    clock_.advance_s(length_s);
    engine::StepResult result{length_s, length_s / 4.0, 5.0 - static_cast<double>(steps_), {}};
    if (steps_ == diverge_at) result.loss = std::nan("");
    result.disturbed = is_disturbed(steps_++);
    return result;
  }

  std::function<double(std::int64_t)> length_s_;
  ManualClock clock_;
  std::int64_t steps_ = 0;
};

TEST(Measure, StopsAfterTenStepsOfEqualLength) {
  FakeTraining training([](std::int64_t) { return 0.1; });
  const bench::Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 100.0});
  EXPECT_EQ(result.steps, 10 + 10);  // two windows of five show that steps are steady
  EXPECT_TRUE(result.steady);
  EXPECT_EQ(result.stopped, bench::Stopped::kPrecise);
  EXPECT_EQ(result.measured_steps, 10);
  EXPECT_DOUBLE_EQ(result.step_time_s, 0.1);
  EXPECT_DOUBLE_EQ(result.step_time_sem_s, 0.0);
  EXPECT_DOUBLE_EQ(result.exposed_comm_s, 0.025);
  EXPECT_DOUBLE_EQ(result.loss_first, 5.0);
  EXPECT_DOUBLE_EQ(result.loss_last, 5.0 - 19.0);
}

TEST(Measure, WarmsUpForAsLongAsItIsTold) {
  FakeTraining training([](std::int64_t) { return 0.125; });
  EXPECT_EQ(training.measure({.warmup_s = 2.0, .measure_s = 100.0}).steps, 16 + 10);
}

TEST(Measure, WarmsUpUntilStepsAreSteady) {
  // Each step is a tenth shorter than the one before, and constant from step 12 on.
  FakeTraining cooling(
      [](std::int64_t step) { return std::pow(0.9, std::min<double>(static_cast<double>(step), 12)); });
  const bench::Measurement result = cooling.measure({.warmup_s = 0.0, .measure_s = 100.0});
  EXPECT_TRUE(result.steady);
  EXPECT_GE(result.steps - result.measured_steps, 18);  // five steps after step 12
  EXPECT_DOUBLE_EQ(result.step_time_p90_s, std::pow(0.9, 12));
}

TEST(Measure, GivesUpOnStepsThatNeverBecomeSteady) {
  FakeTraining falling([](std::int64_t step) { return std::pow(0.95, static_cast<double>(step)); });
  const bench::Measurement by_steps = falling.measure({.warmup_s = 0.0, .measure_s = 100.0});
  EXPECT_FALSE(by_steps.steady);
  EXPECT_EQ(by_steps.steps - by_steps.measured_steps, 20);
  FakeTraining slow([](std::int64_t step) { return 3.0 * std::pow(0.95, static_cast<double>(step)); });
  const bench::Measurement by_time = slow.measure({.warmup_s = 1.0, .measure_s = 20.0});
  EXPECT_FALSE(by_time.steady);
  EXPECT_EQ(by_time.steps - by_time.measured_steps, 4);  // 3 + 2.85 + 2.71 + 2.57 > 1 + 20 / 2
}

TEST(Measure, TellsAProvisionalValueOnceThreeStepsAreMeasured) {
  FakeTraining training([](std::int64_t step) { return step < 10 ? 1.0 : 1.0 + 0.001 * static_cast<double>(step); });
  std::vector<std::string> heard;
  training.measure({.warmup_s = 0.0, .measure_s = 100.0}, [&](const bench::StepReport& report) {
    heard.push_back(std::string(bench::to_string(report.phase)) + " " + std::to_string(report.step) + " " +
                    (report.provisional_s ? std::to_string(*report.provisional_s) : "-"));
  });
  ASSERT_EQ(heard.size(), 20U);
  EXPECT_EQ(heard[9], "warm-up 10 -");
  EXPECT_EQ(heard[10], "measure 11 -");
  EXPECT_EQ(heard[11], "measure 12 -");
  EXPECT_EQ(heard[12], "measure 13 1.011000");
  EXPECT_EQ(heard[14], "measure 15 1.012000");
}

TEST(Measure, SaysHowSureItIsAfterFiveStepsAndThenMoreSeldom) {
  FakeTraining training([](std::int64_t step) { return step % 2 == 0 ? 1.0 : 1.1; });
  std::vector<std::int64_t> told;
  double at_first_s = 0.0;
  training.measure({.warmup_s = 0.0, .steps = 100}, [&](const bench::StepReport& report) {
    if (!report.provisional_sem_s) return;
    told.push_back(report.measured_steps);
    EXPECT_GT(*report.provisional_sem_s, 0.0);
    // For five steps the interval is the whole range.
    if (report.measured_steps == 5) at_first_s = *report.provisional_sem_s;
  });
  EXPECT_GE(at_first_s, 0.1 / 4.0 - 1e-12);
  ASSERT_GE(told.size(), 10U);
  EXPECT_EQ(told[0], 5);
  EXPECT_EQ(told[1], 6);
  EXPECT_LE(told.size(), 40U);
}

// Five steps of 10 ms are slow together when another program runs for a moment.
TEST(Measure, SaysHowSureItIsOnlyAfterASecond) {
  const auto first_told = [](double measure_s) {
    FakeTraining training([](std::int64_t step) { return step % 2 == 0 ? 0.01 : 0.02; });
    std::int64_t first = 0;
    training.measure({.warmup_s = 0.0, .measure_s = measure_s}, [&](const bench::StepReport& report) {
      if (report.provisional_sem_s && first == 0) first = report.measured_steps;
    });
    return first;
  };
  EXPECT_EQ(first_told(10.0), 67);  // of 15 ms in the mean: 1 s
  EXPECT_EQ(first_told(0.4), 14);   // half of the time
}

TEST(Measure, EndsWhenMoreStepsDoNotNarrowTheInterval) {
  // A trend is not noise: its interval grows with the steps.
  FakeTraining drifting([](std::int64_t step) { return 1.0 + 0.01 * static_cast<double>(step); });
  const bench::Measurement result = drifting.measure({.warmup_s = 0.0, .measure_s = 1e6});
  EXPECT_EQ(result.stopped, bench::Stopped::kNoLongerShrinks);
  EXPECT_EQ(result.measured_steps, 80);
  EXPECT_LE(std::abs(result.drift_per_step_s - 0.01), 1e-12);
  // 0.01 of the mean per step, over 60 seconds, as a fraction of the median.
  EXPECT_LE(std::abs(result.drift_per_minute * result.step_time_mean_s * result.step_time_s / 0.6 - 1.0), 1e-9);
}

TEST(Measure, CountsOutliersAndKeepsThem) {
  Rng rng(5, 0);
  FakeTraining training([&](std::int64_t step) { return step % 20 == 19 ? 3.0 : 1.0 + 0.01 * rng.normal(); });
  const bench::Measurement result = training.measure({.steps = 103});
  EXPECT_EQ(result.measured_steps, 100);
  EXPECT_EQ(result.outliers, 5);
  EXPECT_LE(std::abs(result.step_time_mean_s - 1.1), 0.01);  // 5 % of them take 3
  EXPECT_LE(std::abs(result.step_time_s - 1.0), 0.01);
}

TEST(Measure, RepeatsStepsForTheirMedianAlone) {
  ManualClock clock;
  std::int64_t steps = 0;
  const auto step = [&] {
    clock.advance_s(1.0);
    engine::StepResult result;
    result.step_time_s = static_cast<double>(++steps);
    return result;
  };
  EXPECT_DOUBLE_EQ(bench::median_step_time_s(step, clock, 5, 100.0), 5.0);  // 3 to 7
  steps = 0;
  EXPECT_DOUBLE_EQ(bench::median_step_time_s(step, clock, 100, 3.0), 4.0);  // 3 to 5
  steps = 0;
  EXPECT_DOUBLE_EQ(bench::median_step_time_s(step, clock, 100, 0.0), 3.0);
}

TEST(Measure, LeavesTheWarmUpOutOfTheResult) {
  FakeTraining training([](std::int64_t step) { return step < 10 ? 9.0 : 1.0; });
  EXPECT_DOUBLE_EQ(training.measure({.warmup_s = 0.0, .measure_s = 100.0}).step_time_p90_s, 1.0);
}

TEST(Measure, EndsWithTheStepThatRunsWhenTimeIsOver) {
  FakeTraining training([](std::int64_t step) { return step % 2 == 0 ? 1.0 : 2.0; });  // never precise enough
  training.measure({.warmup_s = 0.0, .measure_s = 20.0});
  const double warmup_s = 10.0;  // given up after half the time
  EXPECT_GE(training.now_s(), warmup_s + 20.0);
  EXPECT_LE(training.now_s(), warmup_s + 1.0 + 20.0 + 2.0);
}

TEST(Measure, MeasuresOneStepThatIsLongerThanAllTheTime) {
  FakeTraining training([](std::int64_t) { return 60.0; });
  EXPECT_EQ(training.measure({.warmup_s = 0.0, .measure_s = 10.0}).measured_steps, 1);
}

TEST(Measure, GoesOnUntilTheIntervalIsNarrow) {
  Rng rng(3, 0);
  FakeTraining training([&](std::int64_t) { return 1.0 + 0.05 * rng.normal(); });
  const bench::Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 1e6});
  EXPECT_GT(result.measured_steps, 10);
  const bench::Interval interval = result.step_time_interval_s;
  EXPECT_LE((interval.high - interval.low) / 2.0, 0.01 * result.step_time_s);
  EXPECT_LE(std::abs(result.step_time_s - 1.0), 0.03);
}

TEST(Measure, TakesExactlyTheStepsAskedFor) {
  for (const std::int64_t steps : {1, 2, 5, 13, 40}) {
    FakeTraining training([](std::int64_t step) { return 1.0 + static_cast<double>(step); });
    const bench::Measurement result = training.measure({.warmup_s = 50.0, .measure_s = 0.0, .steps = steps});
    EXPECT_EQ(result.steps, steps);
    EXPECT_EQ(result.measured_steps, steps - std::min<std::int64_t>(3, steps / 4));
  }
}

TEST(Measure, LeavesStepsOutThatWereDisturbed) {
  FakeTraining training([](std::int64_t step) { return step % 8 == 0 ? 1.0 : 0.125; });
  training.is_disturbed = [](std::int64_t step) { return step % 8 == 0; };
  const bench::Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 100.0});
  EXPECT_TRUE(result.steady);
  EXPECT_EQ(result.measured_steps, 10);
  for (const double seconds : {result.step_time_s, result.step_time_mean_s, result.step_time_p90_s}) {
    EXPECT_DOUBLE_EQ(seconds, 0.125);
  }
  EXPECT_EQ(result.outliers, 0);
}

TEST(Measure, CountsDisturbedStepsWhereThereAreNoOthers) {
  FakeTraining training([](std::int64_t) { return 1.0; });
  training.is_disturbed = [](std::int64_t) { return true; };
  const bench::Measurement result = training.measure({.steps = 4});
  EXPECT_EQ(result.measured_steps, 3);
  EXPECT_DOUBLE_EQ(result.step_time_s, 1.0);
}

TEST(Measure, EndsWhereTheLossIsNoNumber) {
  for (const std::int64_t at : {0, 2, 7}) {
    FakeTraining training([](std::int64_t) { return 1.0; });
    training.diverge_at = at;
    const bench::Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 1e6});
    EXPECT_TRUE(result.diverged);
    EXPECT_EQ(result.steps, at + 1);
  }
}

}  // namespace krigtune::measure_test
