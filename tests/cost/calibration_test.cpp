// Compares with a synthetic step whose parts and true factors are known.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "cost/time/calibrate_time.h"
#include "krigtune/rng.h"

namespace krigtune::calibration_test {

struct Parts {
  double products_s, memory_s, collectives_s, issue_s, host_s;
};

// Kernels run while others are issued, as in the model.
double step_s(const Parts& parts, const cost::TimeCalibration& factors) {
  const double kernels_s =
      factors.products * parts.products_s + factors.memory * parts.memory_s + factors.collectives * parts.collectives_s;
  return std::max(kernels_s, factors.issue * parts.issue_s) + factors.host * parts.host_s + factors.step_s;
}

std::vector<double> steps_s(const std::vector<Parts>& all, const cost::TimeCalibration& factors) {
  std::vector<double> seconds;
  for (const Parts& parts : all) seconds.push_back(step_s(parts, factors));
  return seconds;
}

std::vector<Parts> random_parts(std::size_t count, std::uint64_t seed) {
  Rng rng(seed, 0);
  std::vector<Parts> all(count);
  for (Parts& parts : all) {
    parts = {rng.uniform() + 0.2, rng.uniform(), rng.uniform(), 1.5 * rng.uniform(), 0.3 * rng.uniform()};
  }
  return all;
}

cost::TimeCalibration calibrated(const std::vector<Parts>& all, const std::vector<double>& seconds) {
  std::vector<cost::MeasuredTime> measured;
  for (const double time : seconds) measured.push_back({.seconds = time});
  return cost::calibrate_time([&](const cost::TimeCalibration& factors) { return steps_s(all, factors); }, measured);
}

double mean_error(const std::vector<Parts>& all, const cost::TimeCalibration& factors,
                  const cost::TimeCalibration& truth) {
  double sum = 0.0;
  for (const Parts& parts : all) sum += std::abs(step_s(parts, factors) / step_s(parts, truth) - 1.0);
  return sum / static_cast<double>(all.size());
}

const cost::TimeCalibration kTruth = {
    .products = 1.3, .memory = 1.7, .collectives = 1.1, .issue = 1.4, .host = 1.2, .step_s = 0.02};

TEST(TimeCalibration, FindsFactorsThatAreKnown) {
  const std::vector<Parts> trials = random_parts(40, 1);
  const cost::TimeCalibration found = calibrated(trials, steps_s(trials, kTruth));
  EXPECT_LE(std::abs(found.products / kTruth.products - 1.0), 0.05);
  EXPECT_LE(std::abs(found.memory / kTruth.memory - 1.0), 0.05);
  EXPECT_LE(std::abs(found.collectives / kTruth.collectives - 1.0), 0.05);
  EXPECT_LE(std::abs(found.issue / kTruth.issue - 1.0), 0.05);
  EXPECT_LE(mean_error(random_parts(100, 2), found, kTruth), 0.01);
}

TEST(TimeCalibration, PredictsOthersFromFive) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::vector<Parts> trials = random_parts(5, seed);
    const std::vector<Parts> others = random_parts(100, 100 + seed);
    const cost::TimeCalibration found = calibrated(trials, steps_s(trials, kTruth));
    EXPECT_LE(mean_error(others, found, kTruth), 0.06) << seed;
    EXPECT_GE(mean_error(others, {}, kTruth), 0.2) << seed;
  }
}

TEST(TimeCalibration, LearnsACommonFactorFromTwoTrials) {
  const cost::TimeCalibration truth = {
      .products = 1.4, .memory = 1.4, .collectives = 1.4, .issue = 1.4, .host = 1.4, .step_s = 0.0};
  const std::vector<Parts> trials = random_parts(2, 3);
  EXPECT_LE(mean_error(random_parts(100, 4), calibrated(trials, steps_s(trials, truth)), truth), 0.04);
}

TEST(TimeCalibration, IsNotLedAstrayByAnOutlier) {
  const std::vector<Parts> trials = random_parts(10, 5);
  std::vector<double> seconds = steps_s(trials, kTruth);
  const double clean = mean_error(trials, calibrated(trials, seconds), kTruth);
  seconds[3] *= 10.0;
  const double spoilt = mean_error(trials, calibrated(trials, seconds), kTruth);
  EXPECT_LE(clean, 0.03);
  EXPECT_LE(spoilt, 0.08);  // a least-squares mean of logarithms would be 26 % off
}

TEST(TimeCalibration, LeavesOneTrialAndRightPredictionsAlone) {
  const std::vector<Parts> one = random_parts(1, 6);
  EXPECT_EQ(calibrated(one, {100.0}).products, 1.0);
  EXPECT_EQ(cost::calibrate_time([](const cost::TimeCalibration&) { return std::vector<double>(); }, {}).products, 1.0);
  const std::vector<Parts> trials = random_parts(10, 7);
  EXPECT_LE(mean_error(trials, calibrated(trials, steps_s(trials, {})), {}), 1e-3);
}

// There is nothing to learn: all factors are 1, and measurements scatter by 8 %, like the model's own errors.
TEST(TimeCalibration, DoesNotFollowNoise) {
  double sum = 0.0;
  double largest = 0.0;
  constexpr int kSessions = 50;
  for (std::uint64_t seed = 0; seed < kSessions; ++seed) {
    const std::vector<Parts> trials = random_parts(5, 200 + seed);
    std::vector<double> seconds = steps_s(trials, {});
    Rng rng(seed, 1);
    for (double& time : seconds) time *= std::exp(0.08 * rng.normal());
    const double error = mean_error(random_parts(50, 300 + seed), calibrated(trials, seconds), {});
    sum += error;
    largest = std::max(largest, error);
  }
  EXPECT_LE(sum / kSessions, 0.02);
  EXPECT_LE(largest, 0.15);
}

TEST(TimeCalibration, TrustsExactMeasurementsMore) {
  const std::vector<Parts> trials = random_parts(4, 8);
  const std::vector<double> seconds = steps_s(trials, kTruth);
  const auto found = [&](double relative_error) {
    std::vector<cost::MeasuredTime> measured;
    for (const double time : seconds) measured.push_back({time, relative_error});
    return cost::calibrate_time([&](const cost::TimeCalibration& factors) { return steps_s(trials, factors); },
                                measured);
  };
  EXPECT_LT(mean_error(trials, found(0.01), kTruth), mean_error(trials, found(0.5), kTruth));
}

}  // namespace krigtune::calibration_test
