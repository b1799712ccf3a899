#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "krigtune/surrogate/success_model.h"
#include "surrogate/bounds.h"
#include "surrogate/gaussian_integrals.h"

namespace krigtune::censored_test {

using Eigen::Index;
using Eigen::VectorXd;
using reference::fit_of;
using reference::Integral;
using reference::kNoise;
using reference::Matrix;
using reference::normal_cdf;
using reference::Real;
using reference::theta_of;
using reference::Vector;

surrogate::Points line(const std::vector<double>& places) {
  surrogate::Points points = surrogate::Points::zero(static_cast<Index>(places.size()), 1, 0);
  for (std::size_t i = 0; i < places.size(); ++i) points.ordered(static_cast<Index>(i), 0) = places[i];
  return points;
}

struct Gaussian {
  Vector mean;
  Matrix covariance;
};

/// Returns the distribution of the function at `at`, given values with noise of variance kNoise^2.
Gaussian given_values(const surrogate::Observations& values, const surrogate::Points& at, const VectorXd& theta) {
  Gaussian result{Vector(static_cast<std::size_t>(at.size()), 0), reference::gram(at, at, theta)};
  if (values.size() == 0) return result;
  const Matrix k = reference::gram(values.points, values.points, theta);
  const Vector noise(k.size(), static_cast<Real>(kNoise) * kNoise);
  const Matrix inverse = reference::invert(reference::with_diagonal(k, noise)).inverse;
  const Matrix cross = reference::gram(at, values.points, theta);
  for (std::size_t i = 0; i < cross.size(); ++i) {
    result.mean[i] = reference::quadratic(cross[i], inverse, reference::to_reference(values.values));
    for (std::size_t j = 0; j < cross.size(); ++j)
      result.covariance[i][j] -= reference::quadratic(cross[i], inverse, cross[j]);
  }
  return result;
}

Real evidence_of_values(const surrogate::Observations& values, const VectorXd& theta) {
  if (values.size() == 0) return 0;
  const Vector noise(static_cast<std::size_t>(values.size()), static_cast<Real>(kNoise) * kNoise);
  return reference::log_marginal_likelihood(values.points, reference::to_reference(values.values), noise, theta);
}

/// Returns the exact posterior at the bounds' points.
Integral exact(const surrogate::Observations& values, const surrogate::Bounds& bounds, const VectorXd& theta,
               Real step) {
  const Gaussian prior = given_values(values, bounds.points, theta);
  const auto likelihood = [&bounds](const Vector& f) {
    Real product = 1;
    for (std::size_t i = 0; i < f.size(); ++i)
      product *= normal_cdf((f[i] - bounds.bounds[static_cast<Index>(i)]) / static_cast<Real>(kNoise));
    return product;
  };
  return reference::integrate(prior.mean, prior.covariance, likelihood, step);
}

/// Largest errors: of the marginals' means at the bounds' points, in stddevs; of their variances, relative; and of the
/// log evidence.
struct Accuracy {
  double mean;
  double variance;
  double log_evidence;
};

constexpr Accuracy kExact{1e-10, 1e-10, 1e-10};

void expect_near_exact(const surrogate::Observations& values, const surrogate::Bounds& bounds, Real step,
                       const Accuracy& accuracy) {
  const VectorXd theta = theta_of(1);
  const surrogate::CensoredFit fit = fit_of(values, bounds, theta);
  EXPECT_TRUE(fit.converged);
  const Integral want = exact(values, bounds, theta, step);
  const surrogate::Prediction got = fit.process.predict(bounds.points);
  for (Index i = 0; i < bounds.points.size(); ++i) {
    const auto mean = static_cast<double>(want.mean[static_cast<std::size_t>(i)]);
    const auto variance = static_cast<double>(want.variance[static_cast<std::size_t>(i)]);
    EXPECT_LE(std::abs(got.mean[i] - mean), accuracy.mean * std::sqrt(variance)) << i;
    EXPECT_LE(std::abs(got.variance[i] / variance - 1.0), accuracy.variance) << i;
  }
  const auto log_evidence = static_cast<double>(std::log(want.evidence) + evidence_of_values(values, theta));
  EXPECT_LE(std::abs(fit.log_evidence - log_evidence), accuracy.log_evidence);
}

const surrogate::Observations kNoValues;

surrogate::Observations some_values() { return {line({0.1, 0.4, 0.9}), Eigen::Vector3d(0.3, -0.5, 0.8), {}}; }

TEST(Censored, IsExactForOneBound) {
  for (const double bound : {-3.0, -0.5, 0.0, 0.7, 2.5}) {
    SCOPED_TRACE(bound);
    const surrogate::Bounds bounds{line({0.6}), VectorXd::Constant(1, bound)};
    expect_near_exact(kNoValues, bounds, 0.01L, kExact);
    expect_near_exact(some_values(), bounds, 0.01L, kExact);
  }
}

TEST(Censored, IsExactElsewhereToo) {
  // f(x) given f(x0) does not depend on the bound at x0, so mean and variance elsewhere follow from those at x0.
  const VectorXd theta = theta_of(1);
  const surrogate::Points at = line({0.6, 0.2});
  const surrogate::Bounds bounds{at.slice(0, 1), VectorXd::Constant(1, 1.0)};
  const Integral there = exact(some_values(), bounds, theta, 0.01L);
  const Gaussian prior = given_values(some_values(), at, theta);
  const Real slope = prior.covariance[1][0] / prior.covariance[0][0];
  const Real mean = prior.mean[1] + slope * (there.mean[0] - prior.mean[0]);
  const Real variance = prior.covariance[1][1] - slope * prior.covariance[0][1] + slope * slope * there.variance[0];
  const surrogate::Prediction got = fit_of(some_values(), bounds, theta).process.predict(at);
  EXPECT_LE(std::abs(got.mean[1] - static_cast<double>(mean)), 1e-11);
  EXPECT_LE(std::abs(got.variance[1] - static_cast<double>(variance)), 1e-11);
}

TEST(Censored, AnUpperBoundIsALowerOneOfTheNegative) {
  const Eigen::Vector3d bound(0.2, -0.6, 0.4);
  const surrogate::Points at = line({0.2, 0.5, 0.7});
  const Eigen::Vector3d sign(1.0, -1.0, 1.0);
  surrogate::Observations negative = some_values();
  negative.values = -negative.values;
  const surrogate::CensoredFit fit = fit_of(some_values(), {at, bound, sign}, theta_of(1));
  const surrogate::CensoredFit mirrored = fit_of(negative, {at, -bound, -sign}, theta_of(1));
  const surrogate::Points elsewhere = line({0.1, 0.35, 0.6});
  EXPECT_LE((fit.process.predict(elsewhere).mean + mirrored.process.predict(elsewhere).mean).cwiseAbs().maxCoeff(),
            1e-9);
  EXPECT_LE(std::abs(fit.log_evidence - mirrored.log_evidence), 1e-9);
  // Only the point in the middle is below its bound: the same bound upside down pulls down.
  const double down =
      fit_of(some_values(), {line({0.5}), VectorXd::Constant(1, -1.0), VectorXd::Constant(1, -1.0)}, theta_of(1))
          .process.predict(line({0.5}))
          .mean[0];
  const double free =
      fit_of(some_values(), {line({0.5}).slice(0, 0), {}, {}}, theta_of(1)).process.predict(line({0.5})).mean[0];
  EXPECT_LT(down, free - 0.1);
  EXPECT_THROW(fit_of(some_values(), {at, bound, Eigen::Vector3d(1.0, 0.5, 1.0)}, theta_of(1)), UserError);
}

TEST(Censored, IsNearTheIntegralOverTwoAndThreeCorrelatedBounds) {
  // If one bound nearly implies another, expectation propagation is inexact: its posterior variances are too small by
  // up to a tenth.
  constexpr Accuracy kNear{0.01, 0.13, 0.03};
  expect_near_exact(kNoValues, {line({0.5, 0.6}), Eigen::Vector2d(0.5, 1.0)}, 0.05L, kNear);
  expect_near_exact(some_values(), {line({0.5, 0.6}), Eigen::Vector2d(0.5, 1.0)}, 0.05L, kNear);
  expect_near_exact(kNoValues, {line({0.2, 0.5, 0.7}), Eigen::Vector3d(0.0, 0.5, 2.0)}, 0.15L, kNear);
  expect_near_exact(some_values(), {line({0.2, 0.5, 0.7}), Eigen::Vector3d(0.0, 0.5, 2.0)}, 0.15L, kNear);
}

TEST(Censored, WithoutBoundsIsTheGaussianProcess) {
  const VectorXd theta = theta_of(1);
  const surrogate::CensoredFit fit = fit_of(some_values(), {}, theta);
  EXPECT_TRUE(fit.converged);
  surrogate::GaussianProcess plain(surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::zero());
  plain.condition(some_values(), theta);
  const surrogate::Points at = line({0.0, 0.3, 0.8});
  EXPECT_EQ(fit.process.predict(at).mean, plain.predict(at).mean);
  EXPECT_EQ(fit.process.predict(at).variance, plain.predict(at).variance);
  EXPECT_LE(std::abs(fit.log_evidence - plain.log_marginal_likelihood()), 1e-14);
}

TEST(Censored, BoundsFarBelowChangeNothing) {
  const VectorXd theta = theta_of(1);
  const surrogate::Bounds bounds{line({0.0, 0.4, 0.5, 0.7}), Eigen::Vector4d(-15.0, -20.0, -1e3, -1e6)};
  const surrogate::CensoredFit fit = fit_of(some_values(), bounds, theta);
  EXPECT_TRUE(fit.converged);
  const surrogate::CensoredFit plain = fit_of(some_values(), {}, theta);
  const surrogate::Points at = line({0.0, 0.3, 0.4, 0.8});
  const surrogate::Prediction got = fit.process.predict(at);
  const surrogate::Prediction want = plain.process.predict(at);
  EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE(std::abs(fit.log_evidence - plain.log_evidence), 1e-10);
}

TEST(Censored, ABoundFarAboveLiftsAsATruncatedNormal) {
  // f + noise is Normal(0, c^2) truncated from below, c^2 = 1.3^2 + 0.3^2; E f = 1.3^2 / c phi(z) / (1 - Phi(z)) with z
  // = bound / c. The hazard of the normal distribution at z = 10, 40 and 1000 is from mpmath.
  const double c = std::sqrt(1.3 * 1.3 + kNoise * kNoise);
  const double z[] = {10.0, 40.0, 1000.0};
  const double hazard[] = {10.098093233962512, 40.0249688472072637, 1000.00099999800001};
  for (int i = 0; i < 3; ++i) {
    const surrogate::Bounds bounds{line({0.6}), VectorXd::Constant(1, z[i] * c)};
    const surrogate::CensoredFit fit = fit_of(kNoValues, bounds, theta_of(1));
    EXPECT_TRUE(fit.converged);
    const double want = 1.3 * 1.3 / c * hazard[i];
    EXPECT_LE(std::abs(fit.process.predict(bounds.points).mean[0] / want - 1.0), 1e-11) << z[i];
  }
}

TEST(Censored, ABoundMayLieWhereAValueIs) {
  const surrogate::Observations values = some_values();
  expect_near_exact(values, {values.points.slice(1, 1), VectorXd::Constant(1, 0.2)}, 0.01L, kExact);
}

TEST(Censored, BoundsMayBeRepeated) {
  // With the same bound three times at one point, the reference is an integral in one dimension.
  const VectorXd theta = theta_of(1);
  const surrogate::Bounds bounds{line({0.6, 0.6, 0.6}), VectorXd::Constant(3, 0.5)};
  const surrogate::CensoredFit fit = fit_of(some_values(), bounds, theta);
  EXPECT_TRUE(fit.converged);
  const Gaussian prior = given_values(some_values(), bounds.points.slice(0, 1), theta);
  const Integral want = reference::integrate(
      prior.mean, prior.covariance,
      [](const Vector& f) { return std::pow(normal_cdf((f[0] - 0.5L) / static_cast<Real>(kNoise)), 3.0L); }, 0.01L);
  const surrogate::Prediction got = fit.process.predict(bounds.points.slice(0, 1));
  const auto variance = static_cast<double>(want.variance[0]);
  EXPECT_LE(std::abs(got.mean[0] - static_cast<double>(want.mean[0])), 0.01 * std::sqrt(variance));
  EXPECT_LE(std::abs(got.variance[0] / variance - 1.0), 0.05);
}

TEST(Censored, RefusesWhatSaysNothing) {
  EXPECT_THROW(fit_of({}, {}, theta_of(1)), UserError);
  EXPECT_THROW(fit_of({}, {line({0.5}), VectorXd()}, theta_of(1)), UserError);
  EXPECT_THROW(fit_of({}, {line({0.5}), VectorXd::Constant(1, std::nan(""))}, theta_of(1)), UserError);
}

}  // namespace krigtune::censored_test
