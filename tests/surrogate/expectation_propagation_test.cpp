// Properties of expectation propagation with many sites at once: moments that match, and convergence.
#include "expectation_propagation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "krigtune/surrogate/success_model.h"
#include "surrogate/bounds.h"
#include "surrogate/gaussian_integrals.h"

namespace krigtune::expectation_propagation_test {

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

/// Bounds at random points in three dimensions, with values between them.
struct Many {
  surrogate::Observations values;
  surrogate::Bounds bounds;

  Many(int value_count, int bound_count) {
    Rng rng(71, 0);
    values.points = reference::random_points(rng, value_count, 3, 0);
    values.values = VectorXd::NullaryExpr(value_count, [&rng](Index) { return rng.normal(); });
    bounds.points = reference::random_points(rng, bound_count, 3, 0);
    bounds.bounds = VectorXd::NullaryExpr(bound_count, [&rng](Index) { return 1.0 + rng.normal(); });
  }
};

surrogate::Observations without(const surrogate::Observations& all, Index left_out) {
  std::vector<Index> kept;
  for (Index i = 0; i < all.size(); ++i)
    if (i != left_out) kept.push_back(i);
  return {{all.points.ordered(kept, Eigen::all), all.points.categories(kept, Eigen::all),
           all.points.features(kept, Eigen::all)},
          all.values(kept),
          all.variance(kept)};
}

Vector noise_of(const surrogate::Observations& observations) {
  Vector noise;
  for (const double variance : observations.variance) noise.push_back(static_cast<Real>(kNoise) * kNoise + variance);
  return noise;
}

TEST(ExpectationPropagation, IsTheFixedPointOfMomentMatching) {
  // Without a bound's substitute, the process is its cavity. With the true likelihood in its place, it must have the
  // moments that it has with the substitute.
  const Many data(8, 6);
  const VectorXd theta = theta_of(3);
  const surrogate::CensoredFit fit = fit_of(data.values, data.bounds, theta);
  ASSERT_TRUE(fit.converged);
  surrogate::Observations all = data.values;
  all.append(fit.substitutes);
  const surrogate::Prediction got = fit.process.predict(data.bounds.points);
  // The evidence of the Gaussians times the ratio of each true likelihood's mass to its substitute's (Rasmussen &
  // Williams, eq. 3.61).
  Real log_evidence =
      reference::log_marginal_likelihood(all.points, reference::to_reference(all.values), noise_of(all), theta);
  for (Index i = 0; i < 6; ++i) {
    const surrogate::Observations others = without(all, 8 + i);
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

/// 40 values and 80 bounds from a draw of the model's own prior.
Many drawn(double noise) {
  Many data(40, 80);
  Rng rng(72, 0);
  surrogate::Points all = data.values.points;
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

TEST(ExpectationPropagation, ConvergesForManyBoundsAtAnyNoise) {
  for (const double noise : {1e-4, 1e-3, 0.03, 1.0}) {
    SCOPED_TRACE(noise);
    const Many data = drawn(noise);
    const surrogate::CensoredFit fit = fit_of(data.values, data.bounds, theta_of(3, noise));
    EXPECT_TRUE(fit.converged);
    EXPECT_LE(fit.sweeps, 30);
    EXPECT_TRUE(std::isfinite(fit.log_evidence));
    EXPECT_TRUE(fit.substitutes.values.allFinite());
    EXPECT_GE(fit.substitutes.variance.minCoeff(), 0.0);
    const surrogate::Prediction got = fit.process.predict(data.bounds.points);
    const VectorXd above = (got.mean - data.bounds.bounds).array() / (got.variance.array() + noise * noise).sqrt();
    EXPECT_GE(above.minCoeff(), -1.0);
    const surrogate::Prediction plain = fit_of(data.values, {}, theta_of(3, noise)).process.predict(data.bounds.points);
    EXPECT_LE(got.variance.sum(), 0.9 * plain.variance.sum());  // bounds are informative
  }
}

TEST(ExpectationPropagation, ConvergesForContradictions) {
  const Many data(40, 80);  // values and bounds that are unrelated to each other
  for (const double noise : {1e-3, 0.03}) EXPECT_TRUE(fit_of(data.values, data.bounds, theta_of(3, noise)).converged);
}

TEST(ExpectationPropagation, AnUpperBoundIsALowerBoundOfTheNegatedFunction) {
  const Eigen::Vector3d mean(0.3, -0.2, 1.0);
  Eigen::Matrix3d covariance;
  covariance << 1.0, 0.6, 0.1, 0.6, 1.2, 0.5, 0.1, 0.5, 0.8;
  const Eigen::Vector3d sign(1.0, -1.0, 1.0);
  const Eigen::Vector3d bound(0.5, 0.1, -0.4);
  const surrogate::SiteSubstitutes one = surrogate::propagate_expectations(mean, covariance, {sign, bound, 0.2});
  const surrogate::SiteSubstitutes other = surrogate::propagate_expectations(-mean, covariance, {-sign, -bound, 0.2});
  EXPECT_TRUE(one.converged && other.converged);
  EXPECT_LE((one.value + other.value).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LE((one.variance - other.variance).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LE(std::abs(one.log_evidence - other.log_evidence), 1e-12);
}

TEST(ExpectationPropagation, LearnsFromASurePriorToo) {
  // If the latent is known already, nothing moves, and the evidence is the likelihood there.
  const surrogate::SiteSubstitutes sure = surrogate::propagate_expectations(
      VectorXd::Constant(1, 0.4), Eigen::MatrixXd::Zero(1, 1), {VectorXd::Ones(1), VectorXd::Ones(1), 0.5});
  EXPECT_TRUE(sure.converged);
  EXPECT_LE(std::abs(sure.log_evidence - std::log(static_cast<double>(normal_cdf(-1.2L)))), 1e-14);
}

}  // namespace krigtune::expectation_propagation_test
