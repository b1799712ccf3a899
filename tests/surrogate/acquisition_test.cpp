#include "krigtune/surrogate/acquisition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "krigtune/surrogate/gaussian_process.h"
#include "reference_gp.h"

namespace krigtune::acquisition_test {

using Eigen::Index;
using Eigen::VectorXd;
using reference::random_points;

/// Relative for large values, absolute for small ones.
double error(double got, double want) { return std::abs(got - want) / std::max(1.0, std::abs(want)); }

surrogate::Prediction prediction(std::initializer_list<double> mean, std::initializer_list<double> variance) {
  const std::vector<double> means(mean);
  const std::vector<double> variances(variance);
  return {VectorXd::Map(means.data(), std::ssize(means)), VectorXd::Map(variances.data(), std::ssize(variances))};
}

/// The contract of every acquisition: one point and many give the same values, derivatives are those of its value, and
/// values are numbers if the variance is not negative.
void expect_acquisition_contract(const surrogate::Acquisition& acquisition) {
  for (const double mean : {-30.0, -3.0, -0.5, 0.0, 0.7, 1.0, 2.5, 20.0}) {
    for (const double variance : {1e-3, 0.09, 1.0, 16.0}) {
      const surrogate::AcquisitionValue got = acquisition.at(mean, variance);
      EXPECT_LE(error(acquisition.values(prediction({mean}, {variance}))[0], got.value), 1e-13);
      // Central differences over 1e-5 of the scale. The error is the square of the step, 1e-10, plus the values'
      // rounding over it.
      const double rounding = 1e-15 * (1.0 + std::abs(got.value));
      const double step = 1e-5 * std::sqrt(variance);
      const double by_mean =
          (acquisition.at(mean + step, variance).value - acquisition.at(mean - step, variance).value) / (2.0 * step);
      EXPECT_LE(std::abs(got.by_mean - by_mean), 1e-8 * std::abs(by_mean) + rounding / step)
          << mean << ", " << variance;
      const double part = 1e-5 * variance;
      const double by_variance =
          (acquisition.at(mean, variance + part).value - acquisition.at(mean, variance - part).value) / (2.0 * part);
      EXPECT_LE(std::abs(got.by_variance - by_variance), 1e-8 * std::abs(by_variance) + rounding / part)
          << mean << ", " << variance;
    }
    for (const double variance : {0.0, 1e-300, 1e-30}) {
      const surrogate::AcquisitionValue got = acquisition.at(mean, variance);
      EXPECT_TRUE(std::isfinite(got.value) && std::isfinite(got.by_mean) && std::isfinite(got.by_variance))
          << mean << ", " << variance;
    }
  }
}

TEST(Acquisitions, MeetTheContract) {
  expect_acquisition_contract(*surrogate::make_log_expected_improvement(1.0));
  expect_acquisition_contract(*surrogate::make_log_probability_above(0.5));
  expect_acquisition_contract(*surrogate::make_log_probability_below(0.5));
}

/// Returns log of the integral of t N(best + t; mean, stddev^2) over t > 0, by Simpson's rule.
double integrated_log_ei(double mean, double stddev, double best) {
  constexpr int kIntervals = 20000;
  const long double width = (std::max(mean - best, 0.0) + 14.0 * stddev) / kIntervals;
  long double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const long double t = width * i;
    const long double z = (best + t - mean) / stddev;
    const int weight = i == 0 || i == kIntervals ? 1 : (i % 2 == 1 ? 4 : 2);
    sum += weight * t * std::exp(-z * z / 2);
  }
  return static_cast<double>(std::log(sum * width / 3 / (stddev * std::sqrt(2 * std::acos(-1.0L)))));
}

TEST(LogExpectedImprovement, EqualsTheIntegral) {
  const surrogate::Prediction at = prediction({3.0, 1.0, 0.4, -2.0, -20.0}, {0.25, 4.0, 1.0, 0.09, 9.0});
  const double best = 1.0;
  const VectorXd got = surrogate::log_expected_improvement(at, best);
  for (Index i = 0; i < 5; ++i) {
    const double want = integrated_log_ei(at.mean[i], std::sqrt(at.variance[i]), best);
    EXPECT_LE(error(got[i], want), 1e-10) << i;
  }
}

TEST(LogExpectedImprovement, OfACertainGainIsItsLogarithmAndOrdersCertainLosses) {
  const VectorXd got = surrogate::log_expected_improvement(prediction({1.5, 0.5, 0.4}, {0.0, 0.0, 0.0}), 1.0);
  EXPECT_LE(std::abs(got[0] - std::log(0.5)), 1e-11);
  EXPECT_TRUE(got.allFinite());
  EXPECT_GT(got[1], got[2]);
}

TEST(LogExpectedImprovement, DoesNotDependOnTheUnit) {
  const surrogate::Prediction at = prediction({0.3, 0.9, 1.4, -2.0}, {0.2, 0.01, 1.0, 0.5});
  for (const double unit : {1e-12, 1e12}) {
    const surrogate::Prediction in_unit{unit * at.mean, unit * unit * at.variance};
    const VectorXd want = surrogate::log_expected_improvement(at, 1.0).array() + std::log(unit);
    EXPECT_LE((surrogate::log_expected_improvement(in_unit, unit) - want).cwiseAbs().maxCoeff(), 1e-12);
  }
}

TEST(LogProbability, IsThatOfTheNormalDistribution) {
  // Phi(1) = 0.841344746068542948585 (mpmath).
  const double one = std::log(0.841344746068542948585);
  EXPECT_LE(error(surrogate::make_log_probability_above(2.0)->at(3.5, 2.25).value, one), 1e-15);
  EXPECT_LE(error(surrogate::make_log_probability_below(2.0)->at(0.5, 2.25).value, one), 1e-15);
  for (const double mean : {-4.0, 0.0, 3.0}) {
    const double above = surrogate::make_log_probability_above(1.0)->at(mean, 2.0).value;
    const double below = surrogate::make_log_probability_below(1.0)->at(mean, 2.0).value;
    EXPECT_LE(std::abs(std::exp(above) + std::exp(below) - 1.0), 1e-14);
  }
}

std::shared_ptr<const surrogate::GaussianProcess> process_of(std::uint64_t seed, double noise_stddev,
                                                             surrogate::KernelKind kind) {
  Rng rng(seed, 0);
  surrogate::Observations observations{random_points(rng, 15, 2, 1), VectorXd(15), {}};
  for (Index i = 0; i < 15; ++i)
    observations.values[i] = std::sin(4.0 * observations.points.ordered(i, 0)) * observations.points.ordered(i, 1) +
                             0.3 * observations.points.categories(i, 0) + noise_stddev * rng.normal();
  auto process =
      std::make_shared<surrogate::GaussianProcess>(surrogate::make_kernel(kind), surrogate::Mean::constant());
  VectorXd theta(5);
  theta << std::log(0.4), std::log(0.7), 0.0, 0.0, std::log(noise_stddev);
  process->condition(observations, theta);
  return process;
}

/// Improvement subject to two constraints: terms of three processes.
std::vector<surrogate::ScoreTerm> full_terms(std::optional<double> best_feasible) {
  return surrogate::constrained_improvement(process_of(1, 0.05, surrogate::KernelKind::kMatern52), best_feasible,
                                            {{process_of(2, 0.05, surrogate::KernelKind::kMatern52), 0.4},
                                             {process_of(3, 0.1, surrogate::KernelKind::kSquaredExponential), 0.2}});
}

TEST(Score, IsTheSumOfItsTerms) {
  std::vector<surrogate::ScoreTerm> terms = full_terms(0.5);
  terms[1].weight = 0.25;
  Rng rng(9, 0);
  const surrogate::Points at = random_points(rng, 100, 2, 1);
  const VectorXd got = surrogate::Score(terms).values(at);
  for (Index i = 0; i < at.size(); ++i) {
    double want = 0.0;
    for (const surrogate::ScoreTerm& term : terms) {
      const surrogate::Prediction one = term.model->predict(at.slice(i, 1));
      want += term.weight * term.acquisition->at(one.mean[0], one.variance[0]).value;
    }
    EXPECT_LE(error(got[i], want), 1e-11);
  }
}

TEST(Score, HasTheGradientOfItsDifferences) {
  std::vector<surrogate::ScoreTerm> terms = full_terms(0.5);
  terms[1].weight = 0.3;
  const surrogate::Score score(std::move(terms));
  Rng rng(10, 0);
  for (int i = 0; i < 50; ++i) {
    surrogate::Points at = random_points(rng, 1, 2, 1);
    VectorXd gradient;
    EXPECT_LE(error(score.value_with_gradient(at, gradient), score.values(at)[0]), 1e-11);
    for (Index j = 0; j < 2; ++j) {
      // The rounding error of the variance, 1e-14 of it, divided by the step is below 1e-8 of the slope, and so is the
      // step's square.
      const double step = 1e-5;
      const double here = at.ordered(0, j);
      at.ordered(0, j) = here + step;
      const double above = score.values(at)[0];
      at.ordered(0, j) = here - step;
      const double difference = (above - score.values(at)[0]) / (2.0 * step);
      at.ordered(0, j) = here;
      EXPECT_LE(std::abs(gradient[j] - difference), 1e-5 * (1.0 + std::abs(difference)));
    }
  }
}

TEST(ConstrainedImprovement, IsTheProductOfImprovementAndProbabilities) {
  const auto terms = full_terms(0.5);
  Rng rng(11, 0);
  const surrogate::Points at = random_points(rng, 40, 2, 1);
  const VectorXd got = surrogate::Score(terms).values(at).array().exp();
  const auto standard = [&](const surrogate::ScoreTerm& term, double bound) {
    const surrogate::Prediction one = term.model->predict(at);
    return ((bound - one.mean.array()) / one.variance.array().sqrt()).eval();
  };
  const Eigen::ArrayXd first = standard(terms[1], 0.4);
  const Eigen::ArrayXd second = standard(terms[2], 0.2);
  const VectorXd improvement = surrogate::log_expected_improvement(terms[0].model->predict(at), 0.5);
  for (Index i = 0; i < at.size(); ++i) {
    const double probability =
        0.25 * std::erfc(-first[i] / std::numbers::sqrt2) * std::erfc(-second[i] / std::numbers::sqrt2);
    const double want = std::exp(improvement[i]) * probability;
    EXPECT_LE(std::abs(got[i] - want), 1e-9 * want);
  }
}

TEST(ConstrainedImprovement, IsTheProbabilityWhileNothingFeasibleIsKnown) {
  const auto without = full_terms(std::nullopt);
  ASSERT_EQ(without.size(), 2U);
  const auto with = full_terms(0.5);
  Rng rng(12, 0);
  const surrogate::Points at = random_points(rng, 40, 2, 1);
  const VectorXd improvement = surrogate::log_expected_improvement(with[0].model->predict(at), 0.5);
  EXPECT_LE(
      (surrogate::Score(with).values(at) - improvement - surrogate::Score(without).values(at)).cwiseAbs().maxCoeff(),
      1e-10);
}

TEST(IncumbentMean, IsNotTheLuckiestValue) {
  const auto process = process_of(5, 0.5, surrogate::KernelKind::kMatern52);
  const double incumbent = surrogate::incumbent_mean(*process, process->points());
  EXPECT_LE(incumbent, process->values().maxCoeff() - 0.05);
  EXPECT_LE(std::abs(incumbent - process->predict(process->points()).mean.maxCoeff()), 0.0);
}

}  // namespace krigtune::acquisition_test
