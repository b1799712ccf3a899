#include "krigtune/surrogate/censored.h"

#include <gtest/gtest.h>

#include <cmath>

#include "krigtune/core/error.h"
#include "surrogate/gaussian_integrals.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;
using reference::Integral;
using reference::Matrix;
using reference::normal_cdf;
using reference::Real;
using reference::Vector;

constexpr double kNoise = 0.3;

/// Lengthscales of 0.5, a signal variance of 1.3^2, the noise above.
VectorXd theta_of(Index columns, double noise = kNoise) {
  VectorXd theta = VectorXd::Constant(columns + 2, std::log(0.5));
  theta[columns] = 2.0 * std::log(1.3);
  theta[columns + 1] = std::log(noise);
  return theta;
}

CensoredFit fit_of(const Observations& values, const LowerBounds& bounds, const VectorXd& theta) {
  return condition_on_bounds(make_kernel(KernelKind::kMatern52), Mean::zero(), values, bounds, theta);
}

Points line(const std::vector<double>& places) {
  Points points = Points::zero(static_cast<Index>(places.size()), 1, 0);
  for (std::size_t i = 0; i < places.size(); ++i) points.ordered(static_cast<Index>(i), 0) = places[i];
  return points;
}

struct Gaussian {
  Vector mean;
  Matrix covariance;
};

/// Of the function at `at`, given values with noise of variance kNoise^2.
Gaussian given_values(const Observations& values, const Points& at, const VectorXd& theta) {
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

Real evidence_of_values(const Observations& values, const VectorXd& theta) {
  if (values.size() == 0) return 0;
  const Vector noise(static_cast<std::size_t>(values.size()), static_cast<Real>(kNoise) * kNoise);
  return reference::log_marginal_likelihood(values.points, reference::to_reference(values.values), noise, theta);
}

/// The exact posterior at the bounds' points.
Integral exact(const Observations& values, const LowerBounds& bounds, const VectorXd& theta, Real step) {
  const Gaussian prior = given_values(values, bounds.points, theta);
  const auto likelihood = [&bounds](const Vector& f) {
    Real product = 1;
    for (std::size_t i = 0; i < f.size(); ++i)
      product *= normal_cdf((f[i] - bounds.bounds[static_cast<Index>(i)]) / static_cast<Real>(kNoise));
    return product;
  };
  return reference::integrate(prior.mean, prior.covariance, likelihood, step);
}

/// Largest errors: of the marginals' means at the bounds' points, in stddevs; of their variances, relative; of log
/// evidence.
struct Accuracy {
  double mean;
  double variance;
  double log_evidence;
};

constexpr Accuracy kExact{1e-10, 1e-10, 1e-10};

void expect_near_exact(const Observations& values, const LowerBounds& bounds, Real step, const Accuracy& accuracy) {
  const VectorXd theta = theta_of(1);
  const CensoredFit fit = fit_of(values, bounds, theta);
  EXPECT_TRUE(fit.converged);
  const Integral want = exact(values, bounds, theta, step);
  const Prediction got = fit.process.predict(bounds.points);
  for (Index i = 0; i < bounds.points.size(); ++i) {
    const auto mean = static_cast<double>(want.mean[static_cast<std::size_t>(i)]);
    const auto variance = static_cast<double>(want.variance[static_cast<std::size_t>(i)]);
    EXPECT_LE(std::abs(got.mean[i] - mean), accuracy.mean * std::sqrt(variance)) << i;
    EXPECT_LE(std::abs(got.variance[i] / variance - 1.0), accuracy.variance) << i;
  }
  const auto log_evidence = static_cast<double>(std::log(want.evidence) + evidence_of_values(values, theta));
  EXPECT_LE(std::abs(fit.log_evidence - log_evidence), accuracy.log_evidence);
}

const Observations kNoValues;

Observations some_values() { return {line({0.1, 0.4, 0.9}), Eigen::Vector3d(0.3, -0.5, 0.8), {}}; }

TEST(Censored, IsExactForOneBound) {
  for (const double bound : {-3.0, -0.5, 0.0, 0.7, 2.5}) {
    SCOPED_TRACE(bound);
    const LowerBounds bounds{line({0.6}), VectorXd::Constant(1, bound)};
    expect_near_exact(kNoValues, bounds, 0.01L, kExact);
    expect_near_exact(some_values(), bounds, 0.01L, kExact);
  }
}

TEST(Censored, IsExactElsewhereToo) {
  // f(x) given f(x0) does not depend on the bound at x0: mean and variance elsewhere follow from those at x0.
  const VectorXd theta = theta_of(1);
  const Points at = line({0.6, 0.2});
  const LowerBounds bounds{at.slice(0, 1), VectorXd::Constant(1, 1.0)};
  const Integral there = exact(some_values(), bounds, theta, 0.01L);
  const Gaussian prior = given_values(some_values(), at, theta);
  const Real slope = prior.covariance[1][0] / prior.covariance[0][0];
  const Real mean = prior.mean[1] + slope * (there.mean[0] - prior.mean[0]);
  const Real variance = prior.covariance[1][1] - slope * prior.covariance[0][1] + slope * slope * there.variance[0];
  const Prediction got = fit_of(some_values(), bounds, theta).process.predict(at);
  EXPECT_LE(std::abs(got.mean[1] - static_cast<double>(mean)), 1e-11);
  EXPECT_LE(std::abs(got.variance[1] - static_cast<double>(variance)), 1e-11);
}

TEST(Censored, IsNearTheIntegralOverTwoAndThreeCorrelatedBounds) {
  // What expectation propagation leaves where one bound nearly says what another does: posterior variances too small
  // by up to a tenth.
  constexpr Accuracy kNear{0.01, 0.13, 0.03};
  expect_near_exact(kNoValues, {line({0.5, 0.6}), Eigen::Vector2d(0.5, 1.0)}, 0.05L, kNear);
  expect_near_exact(some_values(), {line({0.5, 0.6}), Eigen::Vector2d(0.5, 1.0)}, 0.05L, kNear);
  expect_near_exact(kNoValues, {line({0.2, 0.5, 0.7}), Eigen::Vector3d(0.0, 0.5, 2.0)}, 0.15L, kNear);
  expect_near_exact(some_values(), {line({0.2, 0.5, 0.7}), Eigen::Vector3d(0.0, 0.5, 2.0)}, 0.15L, kNear);
}

TEST(Censored, WithoutBoundsIsTheGaussianProcess) {
  const VectorXd theta = theta_of(1);
  const CensoredFit fit = fit_of(some_values(), {}, theta);
  EXPECT_TRUE(fit.converged);
  GaussianProcess plain(make_kernel(KernelKind::kMatern52), Mean::zero());
  plain.condition(some_values(), theta);
  const Points at = line({0.0, 0.3, 0.8});
  EXPECT_EQ(fit.process.predict(at).mean, plain.predict(at).mean);
  EXPECT_EQ(fit.process.predict(at).variance, plain.predict(at).variance);
  EXPECT_LE(std::abs(fit.log_evidence - plain.log_marginal_likelihood()), 1e-14);
}

TEST(Censored, BoundsFarBelowChangeNothing) {
  const VectorXd theta = theta_of(1);
  const LowerBounds bounds{line({0.0, 0.4, 0.5, 0.7}), Eigen::Vector4d(-15.0, -20.0, -1e3, -1e6)};
  const CensoredFit fit = fit_of(some_values(), bounds, theta);
  EXPECT_TRUE(fit.converged);
  const CensoredFit plain = fit_of(some_values(), {}, theta);
  const Points at = line({0.0, 0.3, 0.4, 0.8});
  const Prediction got = fit.process.predict(at);
  const Prediction want = plain.process.predict(at);
  EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE(std::abs(fit.log_evidence - plain.log_evidence), 1e-10);
}

TEST(Censored, ABoundFarAboveLiftsAsATruncatedNormal) {
  // f + noise is Normal(0, c^2) cut off below, c^2 = 1.3^2 + 0.3^2; E f = 1.3^2 / c phi(z) / (1 - Phi(z)) with z =
  // bound / c. The hazard of the normal distribution at z = 10, 40 and 1000: mpmath.
  const double c = std::sqrt(1.3 * 1.3 + kNoise * kNoise);
  const double z[] = {10.0, 40.0, 1000.0};
  const double hazard[] = {10.098093233962512, 40.0249688472072637, 1000.00099999800001};
  for (int i = 0; i < 3; ++i) {
    const LowerBounds bounds{line({0.6}), VectorXd::Constant(1, z[i] * c)};
    const CensoredFit fit = fit_of(kNoValues, bounds, theta_of(1));
    EXPECT_TRUE(fit.converged);
    const double want = 1.3 * 1.3 / c * hazard[i];
    EXPECT_LE(std::abs(fit.process.predict(bounds.points).mean[0] / want - 1.0), 1e-11) << z[i];
  }
}

TEST(Censored, ABoundMayLieWhereAValueIs) {
  const Observations values = some_values();
  expect_near_exact(values, {values.points.slice(1, 1), VectorXd::Constant(1, 0.2)}, 0.01L, kExact);
}

TEST(Censored, BoundsMayBeRepeated) {
  // Three times the same bound at one point: an integral in one dimension.
  const VectorXd theta = theta_of(1);
  const LowerBounds bounds{line({0.6, 0.6, 0.6}), VectorXd::Constant(3, 0.5)};
  const CensoredFit fit = fit_of(some_values(), bounds, theta);
  EXPECT_TRUE(fit.converged);
  const Gaussian prior = given_values(some_values(), bounds.points.slice(0, 1), theta);
  const Integral want = reference::integrate(
      prior.mean, prior.covariance,
      [](const Vector& f) { return std::pow(normal_cdf((f[0] - 0.5L) / static_cast<Real>(kNoise)), 3.0L); }, 0.01L);
  const Prediction got = fit.process.predict(bounds.points.slice(0, 1));
  const auto variance = static_cast<double>(want.variance[0]);
  EXPECT_LE(std::abs(got.mean[0] - static_cast<double>(want.mean[0])), 0.01 * std::sqrt(variance));
  EXPECT_LE(std::abs(got.variance[0] / variance - 1.0), 0.05);
}

/// Bounds at random points in three dimensions, values between them.
struct Many {
  Observations values;
  LowerBounds bounds;

  Many(int value_count, int bound_count) {
    Rng rng(71, 0);
    values.points = reference::random_points(rng, value_count, 3, 0);
    values.values = VectorXd::NullaryExpr(value_count, [&rng](Index) { return rng.normal(); });
    bounds.points = reference::random_points(rng, bound_count, 3, 0);
    bounds.bounds = VectorXd::NullaryExpr(bound_count, [&rng](Index) { return 1.0 + rng.normal(); });
  }
};

Observations without(const Observations& all, Index left_out) {
  std::vector<Index> kept;
  for (Index i = 0; i < all.size(); ++i)
    if (i != left_out) kept.push_back(i);
  return {{all.points.ordered(kept, Eigen::all), all.points.categories(kept, Eigen::all),
           all.points.features(kept, Eigen::all)},
          all.values(kept),
          all.variance(kept)};
}

Vector noise_of(const Observations& observations) {
  Vector noise;
  for (const double variance : observations.variance) noise.push_back(static_cast<Real>(kNoise) * kNoise + variance);
  return noise;
}

TEST(Censored, IsTheFixedPointOfMomentMatching) {
  // Without a bound's substitute the process is its cavity; with the true likelihood in its place it must have the
  // moments that it has with the substitute.
  const Many data(8, 6);
  const VectorXd theta = theta_of(3);
  const CensoredFit fit = fit_of(data.values, data.bounds, theta);
  ASSERT_TRUE(fit.converged);
  Observations all = data.values;
  all.append(fit.substitutes);
  const Prediction got = fit.process.predict(data.bounds.points);
  // Evidence of Gaussians times what each lacks of the true likelihood's mass (Rasmussen & Williams, eq. 3.61).
  Real log_evidence =
      reference::log_marginal_likelihood(all.points, reference::to_reference(all.values), noise_of(all), theta);
  for (Index i = 0; i < 6; ++i) {
    const Observations others = without(all, 8 + i);
    const reference::Moments cavity = reference::predict(others.points, reference::to_reference(others.values),
                                                         noise_of(others), theta, data.bounds.points.slice(i, 1));
    const Real bound = data.bounds.bounds[i];
    const Integral want = reference::integrate(
        cavity.mean, {{cavity.variance[0]}},
        [bound](const Vector& f) { return normal_cdf((f[0] - bound) / static_cast<Real>(kNoise)); }, 0.01L);
    EXPECT_LE(std::abs(got.mean[i] - static_cast<double>(want.mean[0])), 1e-9) << i;
    EXPECT_LE(std::abs(got.variance[i] - static_cast<double>(want.variance[0])), 1e-9) << i;
    const Real spread = cavity.variance[0] + noise_of(all)[static_cast<std::size_t>(8 + i)];
    const Real off = fit.substitutes.values[i] - cavity.mean[0];
    log_evidence += std::log(want.evidence) + (off * off / spread + std::log(2 * std::acos(-1.0L) * spread)) / 2;
  }
  EXPECT_LE(std::abs(fit.log_evidence - static_cast<double>(log_evidence)), 1e-8);
}

/// 40 values and 80 bounds of a draw from the model's own prior.
Many drawn(double noise) {
  Many data(40, 80);
  Rng rng(72, 0);
  Points all = data.values.points;
  all.append(data.bounds.points);
  const Matrix root = reference::triangular_root(
      reference::with_diagonal(reference::gram(all, all, theta_of(3)), Vector(120, static_cast<Real>(noise) * noise)));
  Vector z(120);
  for (Real& entry : z) entry = rng.normal();
  for (std::size_t i = 0; i < 120; ++i) {
    Real value = 0;
    for (std::size_t j = 0; j <= i; ++j) value += root[i][j] * z[j];
    if (i < 40)
      data.values.values[static_cast<Index>(i)] = static_cast<double>(value);
    else
      data.bounds.bounds[static_cast<Index>(i) - 40] = static_cast<double>(value) - rng.uniform();
  }
  return data;
}

TEST(Censored, ConvergesForManyBoundsAtAnyNoise) {
  for (const double noise : {1e-4, 1e-3, 0.03, 1.0}) {
    SCOPED_TRACE(noise);
    const Many data = drawn(noise);
    const CensoredFit fit = fit_of(data.values, data.bounds, theta_of(3, noise));
    EXPECT_TRUE(fit.converged);
    EXPECT_LE(fit.sweeps, 30);
    EXPECT_TRUE(std::isfinite(fit.log_evidence));
    EXPECT_TRUE(fit.substitutes.values.allFinite());
    EXPECT_GE(fit.substitutes.variance.minCoeff(), 0.0);
    const Prediction got = fit.process.predict(data.bounds.points);
    const VectorXd above = (got.mean - data.bounds.bounds).array() / (got.variance.array() + noise * noise).sqrt();
    EXPECT_GE(above.minCoeff(), -1.0);
    const Prediction plain = fit_of(data.values, {}, theta_of(3, noise)).process.predict(data.bounds.points);
    EXPECT_LE(got.variance.sum(), 0.9 * plain.variance.sum());  // bounds teach something
  }
}

TEST(Censored, ConvergesForContradictions) {
  const Many data(40, 80);  // values and bounds that have nothing to do with each other
  for (const double noise : {1e-3, 0.03}) EXPECT_TRUE(fit_of(data.values, data.bounds, theta_of(3, noise)).converged);
}

TEST(Censored, RefusesWhatSaysNothing) {
  EXPECT_THROW(fit_of({}, {}, theta_of(1)), UserError);
  EXPECT_THROW(fit_of({}, {line({0.5}), VectorXd()}, theta_of(1)), UserError);
  EXPECT_THROW(fit_of({}, {line({0.5}), VectorXd::Constant(1, std::nan(""))}, theta_of(1)), UserError);
}

}  // namespace
}  // namespace krigtune
