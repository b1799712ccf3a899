// Statistics of step times: published values, and coverage counted on generated series.
#include "programs/bench/step_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "krigtune/rng.h"

namespace krigtune::step_times_test {

bench::StepTimes sample(const std::vector<double>& values) {
  bench::StepTimes times;
  for (const double value : values) times.add(value);
  return times;
}

TEST(StepTimes, HasTheQuantilesOfAKnownSample) {
  const bench::StepTimes times = sample({4.0, 1.0, 3.0, 2.0, 5.0});
  EXPECT_DOUBLE_EQ(times.median(), 3.0);
  EXPECT_DOUBLE_EQ(times.quantile(0.1), 1.4);  // numpy.quantile
  EXPECT_DOUBLE_EQ(times.quantile(1.0), 5.0);
  EXPECT_DOUBLE_EQ(times.mean(), 3.0);
  EXPECT_DOUBLE_EQ(times.mad(), 1.0);
  EXPECT_LE(std::abs(times.independent_sem() - 0.83098), 1e-5);  // 1.2533 * 1.4826 / sqrt 5
}

// Ranks of the 95 % interval: Le Boudec, "Performance Evaluation of Computer and Communication Systems", table A.1.
TEST(StepTimes, HasThePublishedRanksOfTheMediansInterval) {
  struct Row {
    int n, low, high;
  };
  for (const Row row : {Row{6, 1, 6}, Row{10, 2, 9}, Row{20, 6, 15}, Row{30, 10, 21}, Row{70, 27, 44}}) {
    bench::StepTimes times;
    // Values alternate between both ends, so neighbours are not correlated.
    for (int i = 1; i <= row.n; ++i) times.add(i % 2 == 1 ? (i + 1) / 2 : row.n + 1 - i / 2);
    EXPECT_EQ(times.autocorrelation_time(), 1.0) << row.n;
    EXPECT_EQ(times.median_interval().low, row.low) << row.n;
    EXPECT_EQ(times.median_interval().high, row.high) << row.n;
  }
}

// One series of step times with its true median.
struct Source {
  std::string name;
  std::function<std::vector<double>(Rng&, int)> series;
  double median = 0.0;
};

std::vector<double> autoregressive(Rng& rng, int n, double phi) {
  std::vector<double> values;
  double state = rng.normal();
  for (int i = 0; i < n; ++i) {
    values.push_back(10.0 + state);
    state = phi * state + std::sqrt(1.0 - phi * phi) * rng.normal();
  }
  return values;
}

double coverage(const Source& source, int n, int trials) {
  int inside = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Rng rng(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(trial));
    const bench::Interval interval = sample(source.series(rng, n)).median_interval();
    if (interval.low <= source.median && source.median <= interval.high) ++inside;
  }
  return static_cast<double>(inside) / static_cast<double>(trials);
}

constexpr int kTrials = 2000;

// Four standard errors of a coverage that is counted over kTrials.
double tolerance(double expected) { return 4.0 * std::sqrt(expected * (1.0 - expected) / kTrials); }

TEST(StepTimes, EnclosesTheMedianAsOftenAsPromised) {
  const Source normal{"normal", [](Rng& rng, int n) { return autoregressive(rng, n, 0.0); }, 10.0};
  // Skewed, and on average every twentieth step takes five times as long: P(x < m) = 1/2 at 0.95 F(m) = 1/2.
  const Source with_outliers{"lognormal with outliers",
                             [](Rng& rng, int n) {
                               std::vector<double> values;
                               for (int i = 0; i < n; ++i) {
                                 const double value = std::exp(0.1 * rng.normal());
                                 values.push_back(rng.uniform() < 0.05 ? 5.0 * value : value);
                               }
                               return values;
                             },
                             std::exp(0.1 * 0.0660118)};  // Phi^-1(0.5 / 0.95)
  const Source related{"AR(1), 0.5", [](Rng& rng, int n) { return autoregressive(rng, n, 0.5); }, 10.0};
  for (const Source& source : {normal, with_outliers, related}) {
    for (const int n : {10, 40, 100, 400}) {
      const double counted = coverage(source, n, kTrials);
      RecordProperty(source.name + " " + std::to_string(n), std::to_string(counted));
      EXPECT_GE(counted, 0.95 - tolerance(0.95)) << source.name << ", " << n;
    }
  }
}

// A short series cannot know that all of it is too high. The interval shows this only when the series gets longer.
TEST(StepTimes, FallsShortOfItsPromiseWhereASeriesIsShorterThanItsMemory) {
  const Source slow{"AR(1), 0.9", [](Rng& rng, int n) { return autoregressive(rng, n, 0.9); }, 10.0};
  const std::map<int, std::pair<double, double>> bounds = {
      {10, {0.0, 0.75}}, {40, {0.8, 1.0}}, {100, {0.88, 1.0}}, {400, {0.92, 1.0}}};
  for (const auto& [n, from_to] : bounds) {
    const double counted = coverage(slow, n, kTrials);
    RecordProperty(slow.name + " " + std::to_string(n), std::to_string(counted));
    EXPECT_GE(counted, from_to.first) << n;
    EXPECT_LE(counted, from_to.second) << n;
  }
}

TEST(StepTimes, MakesTheIntervalAsWideAsATrend) {
  Rng rng(4, 0);
  bench::StepTimes times;
  for (int i = 0; i < 150; ++i) times.add(10.0 + 0.1 * i + rng.normal());
  const bench::Interval interval = times.median_interval();
  EXPECT_GE(interval.high - interval.low, 0.5 * 15.0);  // independent samples would have a tenth of it
}

TEST(StepTimes, IsNotWiderThanItMustBeForIndependentSamples) {
  double widths = 0.0;
  double plain = 0.0;
  constexpr int kCount = 200;
  for (int trial = 0; trial < 400; ++trial) {
    Rng rng(1, static_cast<std::uint64_t>(trial));
    const bench::StepTimes times = sample(autoregressive(rng, kCount, 0.0));
    widths += times.median_interval().high - times.median_interval().low;
    plain += times.quantile(0.5 + 0.98 / std::sqrt(kCount)) - times.quantile(0.5 - 0.98 / std::sqrt(kCount));
  }
  EXPECT_LE(widths / plain, 1.2);
}

// For the signs of a Gaussian AR(1): rho_k = 2 / pi asin(phi^k) (Sheppard 1899), tau = 1 + 2 sum rho_k.
TEST(StepTimes, FindsTheAutocorrelationTimeOfAnAutoregression) {
  for (const double phi : {0.0, 0.5, 0.9}) {
    double expected = 1.0;
    for (int k = 1; k < 400; ++k) expected += 4.0 / M_PI * std::asin(std::pow(phi, k));
    double mean = 0.0;
    constexpr int kSeries = 10;
    for (int trial = 0; trial < kSeries; ++trial) {
      Rng rng(9, static_cast<std::uint64_t>(trial));
      mean += sample(autoregressive(rng, 4000, phi)).autocorrelation_time() / kSeries;
    }
    EXPECT_LE(std::abs(mean / expected - 1.0), 0.15) << phi;
  }
  EXPECT_EQ(sample({1.0, 1.0, 1.0, 1.0}).autocorrelation_time(), 1.0);
  EXPECT_EQ(sample({1.0}).autocorrelation_time(), 1.0);
}

// The standard error compared with the spread of medians over many series.
TEST(StepTimes, HasTheStandardErrorOfTheMedian) {
  for (const double phi : {0.0, 0.6}) {
    constexpr int kSeries = 400;
    double squares = 0.0;
    double claimed = 0.0;
    for (int trial = 0; trial < kSeries; ++trial) {
      Rng rng(11, static_cast<std::uint64_t>(trial));
      const bench::StepTimes times = sample(autoregressive(rng, 300, phi));
      squares += (times.median() - 10.0) * (times.median() - 10.0) / kSeries;
      claimed += times.median_sem() * times.median_sem() / kSeries;
    }
    EXPECT_LE(std::abs(std::sqrt(claimed / squares) - 1.0), 0.15) << phi;
  }
}

TEST(StepTimes, HasTheSlopeThatTheilAndSenFind) {
  // The slopes of all pairs of (0, 1), (1, 3), (2, 2), (3, 8) are 2, 1/2, 7/3, -1, 5/2, 6; their median is between 2
  // and 7/3.
  EXPECT_DOUBLE_EQ(sample({1.0, 3.0, 2.0, 8.0}).drift_per_step_s(), (2.0 + 7.0 / 3.0) / 2.0);
  EXPECT_EQ(sample({4.0}).drift_per_step_s(), 0.0);
  Rng rng(2, 0);
  bench::StepTimes times;
  // Long enough to be reduced to medians of stretches, with outliers that a regression would follow.
  for (int i = 0; i < 2000; ++i) times.add(5.0 + 0.002 * i + 0.1 * rng.normal() + (i > 1950 ? 100.0 : 0.0));
  EXPECT_LE(std::abs(times.drift_per_step_s() / 0.002 - 1.0), 0.05);
}

TEST(StepTimes, FlagsOutliersByTheModifiedScore) {
  std::vector<double> values = {10.0, 11.0, 9.0, 10.0, 12.0, 8.0, 10.5, 9.5};  // median 10, MAD 0.75
  values.push_back(10.0 + 14.8 * 1.0);
  values.push_back(10.0 - 14.9 * 1.0);
  const bench::StepTimes times = sample(values);
  EXPECT_DOUBLE_EQ(times.median(), 10.0);
  EXPECT_DOUBLE_EQ(times.mad(), 1.0);
  EXPECT_EQ(times.outliers(), 1);
}

}  // namespace krigtune::step_times_test
