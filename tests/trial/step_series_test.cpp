#include "trial/step_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace krigtune::step_series_test {

TEST(StepEstimate, IsTheMedianBehindTheWarmUpWithItsStandardError) {
  const auto found = trial::estimate_steps({9.0, 8.0, 1.0, 1.1, 0.9, 1.2, 1.0}, 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 1.0);
  EXPECT_LE(std::abs(found->mean - 1.04), 1e-12);
  EXPECT_EQ(found->steps, 5);
  // The deviations are 0, 0.1, 0.1, 0.2, 0, with the median 0.1; b_5 = 1.206.
  EXPECT_LE(std::abs(found->independent_sem - std::sqrt(M_PI / 10.0) * 1.4826 * 1.206 * 0.1), 1e-12);
  EXPECT_EQ(found->sem, found->independent_sem) << "too few to tell whether they resemble one another";
  EXPECT_FALSE(trial::estimate_steps({1.0, 2.0}, 2));
  EXPECT_FALSE(trial::estimate_steps({}, 0));
  EXPECT_EQ(trial::estimate_steps({1.0, 3.0}, 0)->value, 2.0);
}

// A series x_i = rho x_(i-1) + e_i with standard deviation 0.05 around 1.
std::vector<double> autoregression(std::size_t n, double rho, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values;
  double state = normal(random);
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(1.0 + 0.05 * state);
    state = rho * state + std::sqrt(1.0 - rho * rho) * normal(random);
  }
  return values;
}

struct Errors {
  double actual = 0.0;
  double stated = 0.0;
  double independent = 0.0;
};
Errors errors_of(std::size_t n, double rho) {
  std::mt19937 random(7);
  constexpr int kRuns = 2000;
  Errors errors;
  for (int run = 0; run < kRuns; ++run) {
    const auto found = trial::estimate_steps(autoregression(n, rho, random), 0);
    errors.actual += (found->value - 1.0) * (found->value - 1.0) / kRuns;
    errors.stated += found->sem * found->sem / kRuns;
    errors.independent += found->independent_sem * found->independent_sem / kRuns;
  }
  errors.actual = std::sqrt(errors.actual);
  errors.stated = std::sqrt(errors.stated);
  errors.independent = std::sqrt(errors.independent);
  return errors;
}

TEST(StepEstimate, ItsStandardErrorIsThatOfManyRunsAlsoWhereStepsResembleOneAnother) {
  const Errors independent = errors_of(40, 0.0);
  EXPECT_GE(independent.stated / independent.actual, 0.9);
  EXPECT_LE(independent.stated / independent.actual, 1.3);
  const Errors similar = errors_of(80, 0.6);
  EXPECT_GE(similar.stated / similar.actual, 0.75);
  EXPECT_LE(similar.stated / similar.actual, 1.25);
  EXPECT_LE(similar.independent / similar.actual, 0.7) << "what it would be without";
  EXPECT_GE(errors_of(40, -0.5).stated / errors_of(40, -0.5).actual, 1.0) << "alternating steps are no better";
}

TEST(StepEstimate, OneOutlierMovesNeitherValueNorError) {
  std::mt19937 random(3);
  std::vector<double> values = autoregression(30, 0.0, random);
  const auto calm = trial::estimate_steps(values, 0);
  values[12] = 50.0;
  const auto disturbed = trial::estimate_steps(values, 0);
  EXPECT_LE(std::abs(disturbed->value - calm->value), 0.02);
  EXPECT_LE(disturbed->sem, 1.5 * calm->sem);
}

TEST(AutocorrelationFactor, OfEqualValuesIsOne) {
  EXPECT_EQ(trial::autocorrelation_factor(std::vector<double>(20, 2.0), 2.0), 1.0);
  EXPECT_EQ(trial::autocorrelation_factor({1, 2, 3}, 2.0), 1.0);
}

TEST(Drift, IsTheLastThirdAgainstTheFirst) {
  EXPECT_FALSE(trial::drift_of({1, 2, 3, 4, 5}));
  const auto rising = trial::drift_of({1.0, 1.01, 0.99, 1.1, 1.1, 1.1, 1.2, 1.21, 1.19});
  ASSERT_TRUE(rising);
  EXPECT_LE(std::abs(rising->relative - 0.2), 1e-12);
  EXPECT_TRUE(rising->is_clear());
  EXPECT_FALSE(trial::drift_of({1.0, 1.01, 0.99, 1, 1, 1, 1.02, 1.01, 1.03})->is_clear()) << "too small to mention";
  EXPECT_FALSE(trial::drift_of({1.0, 2.0, 0.5, 1, 1, 1, 1.2, 2.4, 0.6})->is_clear()) << "no more than noise";
}

TEST(StepSeries, CountsEachRankOnceAStepAndTakesTheMeanOfRanks) {
  trial::StepSeries series;
  EXPECT_TRUE(series.add(0, {0, 2.0}, 10.0));
  EXPECT_TRUE(series.add(1, {0, 2.0}, 20.0));
  EXPECT_FALSE(series.add(0, {0, 2.0}, 99.0));
  EXPECT_TRUE(series.add(0, {0, 1.0}, 5.0));
  EXPECT_TRUE(series.add(0, {1, 0.0}, 7.0));
  EXPECT_EQ(series.count(), 3);
  EXPECT_EQ(series.values(), (std::vector<double>{5.0, 15.0, 7.0}));
  EXPECT_EQ(series.at({0, 2.0}), 15.0);
  EXPECT_EQ(series.at({0, 3.0}), std::nullopt);
}

}  // namespace krigtune::step_series_test
