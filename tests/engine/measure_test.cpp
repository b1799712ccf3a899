#include "bench/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "krigtune/core/rng.h"

namespace krigtune {
namespace {

// Steps of given lengths on a clock that they move.
class FakeTraining {
 public:
  explicit FakeTraining(std::function<double(std::int64_t)> length_s) : length_s_(std::move(length_s)) {}

  Measurement measure(const MeasureOptions& options) {
    return krigtune::measure([this] { return step(); }, clock_, options);
  }
  double now_s() const { return clock_.now_s(); }
  std::int64_t diverge_at = -1;

 private:
  StepResult step() {
    const double length_s = length_s_(steps_);
    clock_.advance_s(length_s);
    const double loss = steps_ == diverge_at ? std::nan("") : 5.0 - static_cast<double>(steps_);
    ++steps_;
    return {length_s, length_s / 4.0, loss, {}};
  }

  std::function<double(std::int64_t)> length_s_;
  ManualClock clock_;
  std::int64_t steps_ = 0;
};

TEST(Measure, StopsAfterTenStepsOfEqualLength) {
  FakeTraining training([](std::int64_t) { return 0.1; });
  const Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 100.0});
  EXPECT_EQ(result.steps, 3 + 10);
  EXPECT_EQ(result.measured_steps, 10);
  EXPECT_DOUBLE_EQ(result.step_time_s, 0.1);
  EXPECT_DOUBLE_EQ(result.step_time_sem_s, 0.0);
  EXPECT_DOUBLE_EQ(result.exposed_comm_s, 0.025);
  EXPECT_DOUBLE_EQ(result.loss_first, 5.0);
  EXPECT_DOUBLE_EQ(result.loss_last, 5.0 - 12.0);
}

TEST(Measure, WarmsUpForAsLongAsItIsTold) {
  FakeTraining training([](std::int64_t) { return 0.25; });
  EXPECT_EQ(training.measure({.warmup_s = 2.0, .measure_s = 100.0}).steps, 8 + 10);
}

TEST(Measure, LeavesTheWarmUpOutOfTheResult) {
  FakeTraining training([](std::int64_t step) { return step < 3 ? 9.0 : 1.0; });
  EXPECT_DOUBLE_EQ(training.measure({.warmup_s = 0.0, .measure_s = 100.0}).step_time_p90_s, 1.0);
}

TEST(Measure, EndsWithTheStepThatRunsWhenTimeIsOver) {
  FakeTraining training([](std::int64_t step) { return step % 2 == 0 ? 1.0 : 2.0; });  // never precise
  training.measure({.warmup_s = 0.0, .measure_s = 20.0});
  const double warmup_s = 1.0 + 2.0 + 1.0;
  EXPECT_GE(training.now_s(), warmup_s + 20.0);
  EXPECT_LE(training.now_s(), warmup_s + 20.0 + 2.0);
}

TEST(Measure, MeasuresOneStepThatIsLongerThanAllTheTime) {
  FakeTraining training([](std::int64_t) { return 60.0; });
  EXPECT_EQ(training.measure({.warmup_s = 0.0, .measure_s = 10.0}).measured_steps, 1);
}

TEST(Measure, GoesOnUntilTheIntervalIsNarrow) {
  Rng rng(3, 0);
  FakeTraining training([&](std::int64_t) { return 1.0 + 0.05 * rng.normal(); });
  const Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 1e6});
  EXPECT_GT(result.measured_steps, 10);
  const Interval interval = result.step_time_interval_s;
  EXPECT_LE((interval.high - interval.low) / 2.0, 0.01 * result.step_time_s);
  EXPECT_LE(std::abs(result.step_time_s - 1.0), 0.03);
}

TEST(Measure, TakesExactlyTheStepsAskedFor) {
  for (const std::int64_t steps : {1, 2, 5, 13, 40}) {
    FakeTraining training([](std::int64_t step) { return 1.0 + static_cast<double>(step); });
    const Measurement result = training.measure({.warmup_s = 50.0, .measure_s = 0.0, .steps = steps});
    EXPECT_EQ(result.steps, steps);
    EXPECT_EQ(result.measured_steps, steps - std::min<std::int64_t>(3, steps / 4));
  }
}

TEST(Measure, EndsWhereTheLossIsNoNumber) {
  for (const std::int64_t at : {0, 2, 7}) {
    FakeTraining training([](std::int64_t) { return 1.0; });
    training.diverge_at = at;
    const Measurement result = training.measure({.warmup_s = 0.0, .measure_s = 1e6});
    EXPECT_TRUE(result.diverged);
    EXPECT_EQ(result.steps, at + 1);
  }
}

TEST(StepTimes, HasTheQuantilesOfAKnownSample) {
  StepTimes times;
  for (const double value : {4.0, 1.0, 3.0, 2.0, 5.0}) times.add(value);
  EXPECT_DOUBLE_EQ(times.median(), 3.0);
  EXPECT_DOUBLE_EQ(times.quantile(0.1), 1.4);  // numpy.quantile
  EXPECT_DOUBLE_EQ(times.quantile(1.0), 5.0);
  // MAD = 1: 1.2533 * 1.4826 / sqrt 5
  EXPECT_LE(std::abs(times.median_sem() - 0.83098), 1e-5);
}

// Ranks of the 95 % interval: Le Boudec, "Performance Evaluation of Computer and Communication Systems", table A.1.
TEST(StepTimes, HasThePublishedRanksOfTheMediansInterval) {
  struct Row {
    int n, low, high;
  };
  for (const Row row : {Row{6, 1, 6}, Row{10, 2, 9}, Row{20, 6, 15}, Row{30, 10, 21}, Row{70, 27, 44}}) {
    StepTimes times;
    for (int i = 1; i <= row.n; ++i) times.add(i);
    EXPECT_EQ(times.median_interval().low, row.low) << row.n;
    EXPECT_EQ(times.median_interval().high, row.high) << row.n;
  }
}

TEST(StepTimes, EnclosesTheMedianAsOftenAsPromised) {
  constexpr int kTrials = 2000;
  for (const int n : {10, 35, 150}) {
    int inside = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      Rng rng(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(trial));
      StepTimes times;
      for (int i = 0; i < n; ++i) times.add(std::exp(rng.normal()));  // skewed, median 1
      const Interval interval = times.median_interval();
      if (interval.low <= 1.0 && 1.0 <= interval.high) ++inside;
    }
    // 95 % less four standard errors of 2000 trials.
    EXPECT_GE(inside, kTrials * 0.95 - 4.0 * std::sqrt(kTrials * 0.95 * 0.05)) << n;
  }
}

// For normal samples the standard error of the median is 1.2533 stddev / sqrt n.
TEST(StepTimes, HasTheStandardErrorOfTheMedianOfNormalSamples) {
  Rng rng(11, 0);
  StepTimes times;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) times.add(3.0 + 2.0 * rng.normal());
  EXPECT_LE(std::abs(times.median_sem() * std::sqrt(kCount) / (1.2533 * 2.0) - 1.0), 0.05);
}

}  // namespace
}  // namespace krigtune
