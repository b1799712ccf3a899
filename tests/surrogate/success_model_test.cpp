#include "krigtune/surrogate/success_model.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "surrogate/reference_gp.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;
using reference::Matrix;
using reference::Real;
using reference::Vector;

SuccessModel make_model(SuccessOptions options = {}) {
  return SuccessModel(make_kernel(KernelKind::kMatern52), options);
}

Real sigmoid(Real z) { return 1 / (1 + std::exp(-z)); }
Real averaged(Real mean, Real variance) { return sigmoid(mean / std::sqrt(1 + std::acos(-1.0L) / 8 * variance)); }

/// The posterior of one latent f ~ N(mean, variance) after one outcome, averaged over the link exactly.
Real integrated(Real mean, Real variance, bool succeeded) {
  constexpr int kSteps = 40000;
  const Real stddev = std::sqrt(variance);
  Real joint = 0;
  Real evidence = 0;
  for (int i = 0; i <= kSteps; ++i) {  // the trapezium rule is exact to rounding for smooth integrands that vanish
    const Real z = -12.0L + 24.0L * i / kSteps;
    const Real f = mean + stddev * z;
    const Real density = std::exp(-z * z / 2) * sigmoid(succeeded ? f : -f);
    evidence += density;
    joint += density * sigmoid(f);
  }
  return joint / evidence;
}

TEST(SuccessModel, AfterOneOutcomeIsNearTheExactIntegral) {
  const Points x = Points::zero(1, 1, 0);
  for (const double prior : {-2.0, 0.0, 2.0, 3.0}) {
    for (const bool succeeded : {false, true}) {
      SuccessModel model = make_model();
      const VectorXd mean = VectorXd::Constant(1, prior);
      model.fit(x, mean, {succeeded});
      const double got = model.probability(x, mean)[0];
      // Laplace's and MacKay's approximations together: three hundredths at this variance (2^2 + 1^2).
      EXPECT_LE(std::abs(got - static_cast<double>(integrated(prior, 5.0L, succeeded))), 0.04)
          << prior << " " << succeeded;
    }
  }
}

/// `count` equal outcomes at one point are one latent with prior variance v: its mode solves
/// f = m + count v t sigmoid(-t f), found by bisection; its variance is 1 / (1 / v + count pi (1 - pi)).
double repeated_outcome(Real prior, Real v, int count, bool succeeded) {
  const Real t = succeeded ? 1 : -1;
  Real low = -1000;
  Real high = 1000;
  for (int i = 0; i < 200; ++i) {
    const Real f = (low + high) / 2;
    (f < prior + count * v * t * sigmoid(-t * f) ? low : high) = f;
  }
  return static_cast<double>(averaged(low, 1 / (1 / v + count * sigmoid(low) * sigmoid(-low))));
}

void expect_repeated_outcome(double prior, int count, bool succeeded) {
  SuccessModel model = make_model();
  const Points x = Points::zero(count, 2, 1);
  const VectorXd mean = VectorXd::Constant(count, prior);
  model.fit(x, mean, std::vector<bool>(static_cast<std::size_t>(count), succeeded));
  const double want = repeated_outcome(prior, 5.0L, count, succeeded);
  EXPECT_LE(std::abs(model.probability(x, mean)[0] - want), 1e-10) << prior << " " << count << " " << succeeded;
}

TEST(SuccessModel, AfterOneOutcomeIsLaplacesApproximation) {
  for (const double prior : {-30.0, -1.0, 0.5, 40.0})
    for (const bool succeeded : {false, true}) expect_repeated_outcome(prior, 1, succeeded);
}

TEST(SuccessModel, FindsTheModeWhereAFullNewtonStepOvershoots) {
  // At the prior's logit of -10 the curvature is nearly nothing: a full step goes to +90, where it is nothing too,
  // and the next one comes back.
  expect_repeated_outcome(-10.0, 20, true);
  expect_repeated_outcome(10.0, 20, false);
}

/// Covariance of the common offset and the linear trend.
Real trend(const SuccessOptions& options, const Points& a, std::size_t i, const Points& b, std::size_t j) {
  Real product = 0;
  for (Index k = 0; k < a.ordered.cols(); ++k)
    product += (a.ordered(static_cast<Index>(i), k) - 0.5L) * (b.ordered(static_cast<Index>(j), k) - 0.5L);
  return std::pow(options.offset_stddev, 2) + std::pow(options.slope_stddev, 2) * product;
}

/// Laplace's approximation with explicit inverses (R&W eq. 3.24) and a slow fixed-point iteration for the mode.
Vector slow_laplace(const Points& x, const VectorXd& mean, const std::vector<bool>& succeeded, const Points& at,
                    const VectorXd& at_mean, const SuccessOptions& options) {
  VectorXd theta = VectorXd::Constant(x.ordered.cols() + x.categories.cols() + 1, std::log(options.lengthscale));
  theta[theta.size() - 1] = 2.0 * std::log(options.signal_stddev);
  const auto with_trend = [&](const Points& a, const Points& b) {
    Matrix k = reference::gram(a, b, theta);
    for (std::size_t i = 0; i < k.size(); ++i)
      for (std::size_t j = 0; j < k[i].size(); ++j) k[i][j] += trend(options, a, i, b, j);
    return k;
  };
  const Matrix k = with_trend(x, x);
  const std::size_t n = k.size();
  Vector f = reference::to_reference(mean);
  Vector slope(n);
  for (int iteration = 0; iteration < 5000; ++iteration) {
    for (std::size_t i = 0; i < n; ++i) slope[i] = succeeded[i] ? sigmoid(-f[i]) : -sigmoid(f[i]);
    for (std::size_t i = 0; i < n; ++i) {
      Real image = mean[static_cast<Index>(i)];
      for (std::size_t j = 0; j < n; ++j) image += k[i][j] * slope[j];
      f[i] += 0.05L * (image - f[i]);
    }
  }
  Vector inverse_w(n);
  for (std::size_t i = 0; i < n; ++i) inverse_w[i] = 1 / (sigmoid(f[i]) * sigmoid(-f[i]));
  const Matrix inverse = reference::invert(reference::with_diagonal(k, inverse_w)).inverse;
  const Matrix cross = with_trend(at, x);
  Vector result;
  for (std::size_t i = 0; i < cross.size(); ++i) {
    Real mu = at_mean[static_cast<Index>(i)];
    for (std::size_t j = 0; j < n; ++j) mu += cross[i][j] * slope[j];
    const Real prior_variance = std::pow(options.signal_stddev, 2) + trend(options, at, i, at, i);
    result.push_back(averaged(mu, prior_variance - reference::quadratic(cross[i], inverse, cross[i])));
  }
  return result;
}

void expect_slow_laplace(const SuccessOptions& options) {
  Rng rng(51, 0);
  const Points x = reference::random_points(rng, 10, 2, 1);
  const Points at = reference::random_points(rng, 15, 2, 1);
  const VectorXd mean = VectorXd::NullaryExpr(10, [&rng](Index) { return 2.0 * rng.normal(); });
  const VectorXd at_mean = VectorXd::NullaryExpr(15, [&rng](Index) { return 2.0 * rng.normal(); });
  std::vector<bool> succeeded;
  for (int i = 0; i < 10; ++i) succeeded.push_back(rng.uniform() < 0.5);
  SuccessModel model = make_model(options);
  model.fit(x, mean, succeeded);
  const VectorXd got = model.probability(at, at_mean);
  const Vector want = slow_laplace(x, mean, succeeded, at, at_mean, options);
  for (Index i = 0; i < got.size(); ++i)
    EXPECT_LE(std::abs(got[i] - static_cast<double>(want[static_cast<std::size_t>(i)])), 1e-9) << i;
}

TEST(SuccessModel, AgreesWithASlowLaplaceOnAMixedSpace) { expect_slow_laplace({}); }

TEST(SuccessModel, AgreesWithASlowLaplaceWithALinearTrend) {
  SuccessOptions options;
  options.slope_stddev = 2.0;
  expect_slow_laplace(options);
}

TEST(SuccessModel, WithoutOutcomesIsThePrior) {
  SuccessModel model = make_model();
  const Points at = Points::zero(2, 3, 1);
  const VectorXd mean = Eigen::Vector2d(2.0, -1.0);
  const auto expect_prior = [&] {
    const VectorXd got = model.probability(at, mean);
    for (Index i = 0; i < 2; ++i) EXPECT_LE(std::abs(got[i] - static_cast<double>(averaged(mean[i], 5.0L))), 1e-14);
  };
  expect_prior();
  model.fit(Points::zero(0, 3, 1), VectorXd(0), {});
  expect_prior();
}

TEST(SuccessModel, AFailureSpreadsToItsNeighbours) {
  Points line = Points::zero(5, 1, 0);
  line.ordered.col(0) << 0.0, 0.1, 0.3, 0.6, 1.0;
  const VectorXd mean = VectorXd::Constant(5, 2.0);
  SuccessModel model = make_model();
  model.fit(line.slice(0, 1), mean.head(1), {false});
  const VectorXd got = model.probability(line, mean);
  for (Index i = 1; i < 5; ++i) EXPECT_GT(got[i], got[i - 1]);
  const SuccessModel prior = make_model();
  EXPECT_LT(got[4], prior.probability(line, mean)[4]);  // through the common offset
}

TEST(SuccessModel, StaysFiniteWhereOutcomesContradictASurePrior) {
  const Points x = Points::zero(6, 1, 0);  // one point six times, with both outcomes
  const std::vector<bool> mixed{true, false, true, false, false, true};
  for (const double prior : {-1000.0, -50.0, 50.0, 1000.0}) {
    SuccessModel model = make_model();
    const VectorXd mean = VectorXd::Constant(6, prior);
    model.fit(x, mean, mixed);
    const VectorXd got = model.probability(x, mean);
    EXPECT_TRUE(got.allFinite());
    EXPECT_GE(got.minCoeff(), 0.0);
    EXPECT_LE(got.maxCoeff(), 1.0);
  }
}

TEST(SuccessModel, IsCalibratedOnDrawsFromItsOwnPrior) {
  constexpr int kSeen = 60;
  constexpr int kAsked = 60;
  constexpr int kDraws = 10;
  double predicted = 0.0;
  double happened = 0.0;
  double spread = 0.0;
  double score = 0.0;  // Brier
  for (int draw = 0; draw < kDraws; ++draw) {
    Rng rng(52, static_cast<std::uint64_t>(draw));
    const Points points = reference::random_points(rng, kSeen + kAsked, 1, 0);
    const VectorXd theta = Eigen::Vector2d(std::log(0.5), 2.0 * std::log(2.0));
    Eigen::MatrixXd k = make_kernel(KernelKind::kMatern52)->gram(points, points, theta).array() + 1.0;
    k.diagonal().array() += 1e-9;
    const VectorXd latent =
        k.llt().matrixL() * VectorXd::NullaryExpr(points.size(), [&rng](Index) { return rng.normal(); });
    std::vector<bool> outcome;
    for (const double f : latent) outcome.push_back(rng.uniform() < static_cast<double>(sigmoid(f)));
    SuccessModel model = make_model();
    model.fit(points.slice(0, kSeen), VectorXd::Zero(kSeen), {outcome.begin(), outcome.begin() + kSeen});
    const VectorXd p = model.probability(points.slice(kSeen, kAsked), VectorXd::Zero(kAsked));
    for (int i = 0; i < kAsked; ++i) {
      const double got = outcome[static_cast<std::size_t>(kSeen + i)] ? 1.0 : 0.0;
      predicted += p[i];
      happened += got;
      spread += p[i] * (1.0 - p[i]);
      score += (p[i] - got) * (p[i] - got);
    }
  }
  EXPECT_LE(std::abs(predicted - happened), 4.0 * std::sqrt(spread));
  // A calibrated forecast has the Brier score that it claims.
  EXPECT_LE(std::abs(score / spread - 1.0), 0.15);
  EXPECT_LE(score / (kDraws * kAsked), 0.2);  // 0.25: knows nothing
}

}  // namespace
}  // namespace krigtune
