#include "krigtune/surrogate/success_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "surrogate/gaussian_integrals.h"

namespace krigtune::success_model_test {

using Eigen::Index;
using Eigen::VectorXd;
using reference::Integral;
using reference::Matrix;
using reference::normal_cdf;
using reference::Real;
using reference::Vector;

constexpr Real kPriorVariance = 1.2L * 1.2L + 0.6L * 0.6L;

surrogate::SuccessModel make_model(surrogate::SuccessOptions options = {}) {
  return surrogate::SuccessModel(surrogate::make_kernel(surrogate::KernelKind::kMatern52), options);
}

Real averaged(Real mean, Real variance) { return normal_cdf(mean / std::sqrt(1 + variance)); }

surrogate::Points line(const std::vector<double>& places) {
  surrogate::Points points = surrogate::Points::zero(static_cast<Index>(places.size()), 1, 0);
  for (std::size_t i = 0; i < places.size(); ++i) points.ordered(static_cast<Index>(i), 0) = places[i];
  return points;
}

/// Prior covariance of the latent.
Matrix covariance(const surrogate::Points& a, const surrogate::Points& b, const surrogate::SuccessOptions& options) {
  VectorXd theta = VectorXd::Constant(a.ordered.cols() + a.categories.cols() + 1, std::log(options.lengthscale));
  theta[theta.size() - 1] = 2.0 * std::log(options.signal_stddev);
  Matrix k = reference::gram(a, b, theta);
  for (std::size_t i = 0; i < k.size(); ++i) {
    for (std::size_t j = 0; j < k[i].size(); ++j) {
      Real product = 0;
      for (Index c = 0; c < a.ordered.cols(); ++c)
        product += (a.ordered(static_cast<Index>(i), c) - 0.5L) * (b.ordered(static_cast<Index>(j), c) - 0.5L);
      k[i][j] += std::pow(options.offset_stddev, 2) + std::pow(options.slope_stddev, 2) * product;
    }
  }
  return k;
}

Real likelihood_of(const Vector& f, const std::vector<bool>& succeeded) {
  Real product = 1;
  for (std::size_t i = 0; i < f.size(); ++i) product *= normal_cdf(succeeded[i] ? f[i] : -f[i]);
  return product;
}

TEST(SuccessModel, WithoutOutcomesIsThePrior) {
  surrogate::SuccessModel model = make_model();
  const surrogate::Points at = surrogate::Points::zero(2, 3, 1);
  const VectorXd mean = Eigen::Vector2d(2.0, -1.0);
  const surrogate::SuccessFit fit = model.fit(surrogate::Points::zero(0, 3, 1), VectorXd(0), {});
  EXPECT_TRUE(fit.converged && fit.log_evidence == 0.0);
  const VectorXd got = model.probability(at, mean);
  for (Index i = 0; i < 2; ++i)
    EXPECT_LE(std::abs(got[i] - static_cast<double>(averaged(mean[i], kPriorVariance))), 1e-14);
}

TEST(SuccessModel, AfterOneOutcomeHasTheExactMoments) {
  const surrogate::Points x = surrogate::Points::zero(1, 1, 0);
  for (const double prior : {-3.0, -1.0, 0.0, 1.0, 3.0}) {
    for (const bool succeeded : {false, true}) {
      surrogate::SuccessOptions options;
      options.mean_feature = 0;
      surrogate::SuccessModel model = make_model(options);
      const VectorXd mean = VectorXd::Constant(1, prior);
      const surrogate::SuccessFit fit = model.fit(x, mean, {succeeded});
      const Integral want = reference::integrate(
          {prior}, {{kPriorVariance}}, [&](const Vector& f) { return likelihood_of(f, {succeeded}); }, 0.01L,
          [](const Vector& f) { return normal_cdf(f[0]); });
      const surrogate::Prediction got = model.predict({x.ordered, x.categories, mean});
      EXPECT_LE(std::abs(got.mean[0] - static_cast<double>(want.mean[0])), 1e-12);
      EXPECT_LE(std::abs(got.variance[0] - static_cast<double>(want.variance[0])), 1e-12);
      EXPECT_LE(std::abs(fit.log_evidence - static_cast<double>(std::log(want.evidence))), 1e-12);
      // The posterior is not Gaussian: the average of Phi over the Gaussian with the same moments deviates by this
      // much.
      EXPECT_LE(std::abs(model.probability(x, mean)[0] - static_cast<double>(want.answer)), 0.005);
    }
  }
}

TEST(SuccessModel, IsNearTheIntegralForTwoOutcomes) {
  const surrogate::Points x = line({0.2, 0.45});
  const std::vector<std::vector<bool>> outcomes{{false, false}, {false, true}, {true, false}, {true, true}};
  for (const double prior : {-1.0, 0.5, 2.0}) {
    for (const std::vector<bool>& succeeded : outcomes) {
      surrogate::SuccessModel model = make_model();
      const VectorXd mean = VectorXd::Constant(2, prior);
      const surrogate::SuccessFit fit = model.fit(x, mean, succeeded);
      const VectorXd got = model.probability(x, mean);
      for (std::size_t i = 0; i < 2; ++i) {
        const Integral want = reference::integrate(
            {prior, prior}, covariance(x, x, {}), [&](const Vector& f) { return likelihood_of(f, succeeded); }, 0.1L,
            [i](const Vector& f) { return normal_cdf(f[i]); });
        EXPECT_LE(std::abs(got[static_cast<Index>(i)] - static_cast<double>(want.answer)), 0.005);
        EXPECT_LE(std::abs(fit.log_evidence - static_cast<double>(std::log(want.evidence))), 0.005);
      }
    }
  }
}

/// Expectation propagation from the definitions: explicit inverses, and the moments of each site times its cavity by
/// numerical integration, for all sites at once, a hundred times.
struct SlowPropagation {
  Vector precision;
  Vector value;
  Matrix inverse;  ///< inverse of K + diag(1 / precision)

  SlowPropagation(const Matrix& k, const Vector& mean, const std::vector<bool>& succeeded)
      : precision(k.size(), 1e-6L), value(mean) {
    for (int sweep = 0; sweep < 100; ++sweep) {
      const Vector old_precision = precision;
      const Vector old_value = value;
      solve(k);
      for (std::size_t i = 0; i < k.size(); ++i) {
        const Real variance = k[i][i] - reference::quadratic(k[i], inverse, k[i]);
        const Real posterior = mean[i] + reference::quadratic(k[i], inverse, residual(old_value, mean));
        const Real rest = 1 / variance - old_precision[i];
        const Real cavity = (posterior / variance - old_precision[i] * old_value[i]) / rest;
        const Integral moments = reference::integrate(
            {cavity}, {{1 / rest}}, [&](const Vector& f) { return likelihood_of(f, {succeeded[i]}); }, 0.1L);
        const Real wanted = 1 / moments.variance[0] - rest;
        const Real shift = moments.mean[0] / moments.variance[0] - cavity * rest;
        const Real damped = (wanted + old_precision[i]) / 2;
        value[i] = (shift + old_precision[i] * old_value[i]) / 2 / damped;
        precision[i] = damped;
      }
    }
    solve(k);
  }
  void solve(const Matrix& k) {
    Vector noise;
    for (const Real p : precision) noise.push_back(1 / p);
    inverse = reference::invert(reference::with_diagonal(k, noise)).inverse;
  }
  static Vector residual(const Vector& value, const Vector& mean) {
    Vector result;
    for (std::size_t i = 0; i < mean.size(); ++i) result.push_back(value[i] - mean[i]);
    return result;
  }
};

void expect_slow_propagation(const surrogate::SuccessOptions& options) {
  Rng rng(51, 0);
  const surrogate::Points x = reference::random_points(rng, 10, 2, 1);
  const surrogate::Points at = reference::random_points(rng, 15, 2, 1);
  const VectorXd mean = VectorXd::NullaryExpr(10, [&rng](Index) { return rng.normal(); });
  const VectorXd at_mean = VectorXd::NullaryExpr(15, [&rng](Index) { return rng.normal(); });
  std::vector<bool> succeeded;
  for (int i = 0; i < 10; ++i) succeeded.push_back(rng.uniform() < 0.5);
  surrogate::SuccessModel model = make_model(options);
  EXPECT_TRUE(model.fit(x, mean, succeeded).converged);
  const VectorXd got = model.probability(at, at_mean);
  const Vector prior = reference::to_reference(mean);
  const SlowPropagation slow(covariance(x, x, options), prior, succeeded);
  const Matrix cross = covariance(at, x, options);
  const Matrix own = covariance(at, at, options);
  for (std::size_t i = 0; i < cross.size(); ++i) {
    const Real mu = at_mean[static_cast<Index>(i)] +
                    reference::quadratic(cross[i], slow.inverse, SlowPropagation::residual(slow.value, prior));
    const Real variance = own[i][i] - reference::quadratic(cross[i], slow.inverse, cross[i]);
    EXPECT_LE(std::abs(got[static_cast<Index>(i)] - static_cast<double>(averaged(mu, variance))), 1e-9) << i;
  }
}

TEST(SuccessModel, AgreesWithASlowPropagationOnAMixedSpace) { expect_slow_propagation({}); }

TEST(SuccessModel, AgreesWithASlowPropagationWithALinearTrend) {
  surrogate::SuccessOptions options;
  options.slope_stddev = 1.2;
  expect_slow_propagation(options);
}

TEST(SuccessModel, AFailureSpreadsToItsNeighbours) {
  const surrogate::Points places = line({0.0, 0.1, 0.3, 0.6, 1.0});
  const VectorXd mean = VectorXd::Constant(5, 1.2);
  surrogate::SuccessModel model = make_model();
  model.fit(places.slice(0, 1), mean.head(1), {false});
  const VectorXd got = model.probability(places, mean);
  for (Index i = 1; i < 5; ++i) EXPECT_GT(got[i], got[i - 1]);
  // The common offset connects it with the others.
  EXPECT_LT(got[4], static_cast<double>(averaged(1.2L, kPriorVariance)));
}

TEST(SuccessModel, EveryFurtherFailureLowersTheProbability) {
  const surrogate::Points at = line({0.3, 0.5});
  const VectorXd at_mean = VectorXd::Constant(2, 1.2);
  VectorXd last = VectorXd::Constant(2, static_cast<double>(averaged(1.2L, kPriorVariance)));
  for (int failures = 1; failures <= 20; ++failures) {
    surrogate::SuccessModel model = make_model();
    const surrogate::SuccessFit fit =
        model.fit(surrogate::Points::zero(failures, 1, 0), VectorXd::Constant(failures, 1.2),
                  std::vector<bool>(static_cast<std::size_t>(failures), false));
    EXPECT_TRUE(fit.converged);
    const VectorXd got = model.probability(at, at_mean);
    EXPECT_LT(got[0], last[0]) << failures;
    EXPECT_LT(got[1], last[1]) << failures;
    last = got;
  }
}

TEST(SuccessModel, StaysFiniteWhereOutcomesContradictASurePrior) {
  const surrogate::Points x = surrogate::Points::zero(6, 1, 0);  // one point six times, with both outcomes
  const std::vector<bool> mixed{true, false, true, false, false, true};
  for (const double prior : {-1000.0, -50.0, -5.0, 5.0, 50.0, 1000.0}) {
    surrogate::SuccessModel model = make_model();
    const VectorXd mean = VectorXd::Constant(6, prior);
    EXPECT_TRUE(model.fit(x, mean, mixed).converged) << prior;
    const VectorXd got = model.probability(x, mean);
    EXPECT_TRUE(got.allFinite());
    EXPECT_GE(got.minCoeff(), 0.0);
    EXPECT_LE(got.maxCoeff(), 1.0);
  }
}

TEST(SuccessModel, IsAModelWhosePriorMeanIsAFeature) {
  Rng rng(53, 0);
  surrogate::Points points = reference::random_points(rng, 12, 2, 1);
  points.features = Eigen::MatrixXd::NullaryExpr(12, 2, [&rng](Index, Index) { return rng.normal(); });
  const std::vector<bool> succeeded{true, false, true, true, false, true};
  surrogate::SuccessOptions options;
  options.slope_stddev = 0.7;
  options.mean_feature = 1;
  surrogate::SuccessModel model = make_model(options);
  model.fit(points.slice(0, 6), points.features.col(1).head(6), succeeded);
  const surrogate::Prediction latent = model.predict(points);
  const VectorXd log_probability = surrogate::make_log_success_probability()->values(latent);
  const VectorXd probability = model.probability(points, points.features.col(1));
  EXPECT_LE((log_probability.array().exp() - probability.array()).abs().maxCoeff(), 1e-14);

  constexpr double kStep = 1e-5;  // central differences: errors of step^2 and of 1e-16 / step
  for (Index row = 6; row < 12; ++row) {
    const surrogate::Points point = points.slice(row, 1);
    const surrogate::PredictionGradient got = model.predict_with_gradient(point);
    EXPECT_LE(std::abs(got.mean - latent.mean[row]), 1e-13);
    EXPECT_LE(std::abs(got.variance - latent.variance[row]), 1e-13);
    for (Index column = 0; column < 2; ++column) {
      surrogate::Points above = point;
      surrogate::Points below = point;
      above.ordered(0, column) += kStep;
      below.ordered(0, column) -= kStep;
      const surrogate::Prediction up = model.predict(above);
      const surrogate::Prediction down = model.predict(below);
      EXPECT_LE(std::abs(got.mean_gradient[column] - (up.mean[0] - down.mean[0]) / (2 * kStep)), 1e-8);
      EXPECT_LE(std::abs(got.variance_gradient[column] - (up.variance[0] - down.variance[0]) / (2 * kStep)), 1e-8);
    }
  }
}

TEST(SuccessModel, TakesASpaceWithoutOrderedColumns) {
  surrogate::SuccessOptions options;
  options.slope_stddev = 1.2;  // a trend without data
  surrogate::SuccessModel model = make_model(options);
  surrogate::Points points = surrogate::Points::zero(2, 0, 1);
  points.categories(1, 0) = 1;
  EXPECT_TRUE(model.fit(points.slice(0, 1), VectorXd::Zero(1), {false}).converged);
  const VectorXd got = model.probability(points, VectorXd::Zero(2));
  EXPECT_TRUE(got[0] < got[1] && got[1] < 0.5);
}

TEST(SuccessModel, ItsAcquisitionHasTheDerivativesOfItsValue) {
  const auto acquisition = surrogate::make_log_success_probability();
  constexpr double kStep = 1e-5;
  for (const double mean : {-40.0, -3.0, -0.2, 0.0, 1.0, 6.0}) {
    for (const double variance : {0.01, 1.0, 30.0}) {
      const surrogate::AcquisitionValue got = acquisition->at(mean, variance);
      const double want = std::log(static_cast<double>(averaged(mean, variance)));
      EXPECT_LE(std::abs(got.value - want), 1e-13 * (1.0 + std::abs(want))) << mean << " " << variance;
      const surrogate::Prediction one{VectorXd::Constant(1, mean), VectorXd::Constant(1, variance)};
      EXPECT_LE(std::abs(acquisition->values(one)[0] - got.value), 1e-13 * (1.0 + std::abs(want)));
      const auto by_mean =
          acquisition->at(mean + kStep, variance).value - acquisition->at(mean - kStep, variance).value;
      const auto by_variance =
          acquisition->at(mean, variance + kStep).value - acquisition->at(mean, variance - kStep).value;
      const double scale = 1.0 + std::abs(want);  // rounding: 1e-16 of the value, divided by the step
      EXPECT_LE(std::abs(got.by_mean - by_mean / (2 * kStep)), 1e-9 * scale) << mean << " " << variance;
      EXPECT_LE(std::abs(got.by_variance - by_variance / (2 * kStep)), 1e-9 * scale) << mean << " " << variance;
    }
  }
}

TEST(SuccessModel, RefusesWhatDoesNotFitTogether) {
  surrogate::SuccessModel model = make_model();
  EXPECT_THROW(model.fit(line({0.5}), VectorXd::Zero(1), {}), UserError);
  EXPECT_THROW(model.fit(line({0.5}), VectorXd::Zero(2), {true}), UserError);
  EXPECT_THROW(model.fit(line({0.5}), VectorXd::Constant(1, std::nan("")), {true}), UserError);
  surrogate::SuccessOptions options;
  options.lengthscale = 0.0;
  EXPECT_THROW(make_model(options), UserError);
}

}  // namespace krigtune::success_model_test
