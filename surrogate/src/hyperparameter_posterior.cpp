// What the maximum-a-posteriori fit maximises, and its gradient.
//
//   log p(y | X, theta) = -1/2 |w|^2 - sum_i log L_ii - n/2 log 2 pi + log_spread,   w = L^-1 (y - H b)
//   d / d theta_p       = sum_ij W_ij dC_ij / d theta_p,   W = (alpha alpha^T - C_y^-1) / 2,   alpha = L^-T w
//
// with C_y = K + H B H^T + diag(noise) = L L^T of the merged observations (Rasmussen & Williams 2006, eq. 2.30
// and 5.9). Priors: normal in log l, log s, log noise stddev and in loadings, as densities of these (no Jacobian of
// exp).
#include "hyperparameter_posterior.h"

#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "cholesky.h"
#include "normal_tails.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// The box: with the signal's stddev at most 1e2 and the noise's at least 1e-4 of the outputs' stddev, the condition
// number of C_y stays below 1e12 n, which double precision factorises (rarely with help of the jitter). A lengthscale
// below 0.01 makes points on any grid of the unit cube independent, one above 100 makes a dimension irrelevant.
struct Interval {
  double lower;
  double upper;
};
constexpr Interval kLengthscale{1e-2, 1e2};
constexpr Interval kSignalStddev{1e-2, 1e2};
constexpr Interval kNoiseStddev{1e-4, 1e1};
constexpr Interval kLoading{-10.0, 10.0};

}  // namespace

HyperparameterPosterior::HyperparameterPosterior(const GpStructure& structure, const Observations& observations)
    : structure_(structure),
      observations_(observations),
      roles_(
          structure.kernel->hyperparameters(observations.points.ordered.cols(), observations.points.categories.cols())),
      basis_(structure.mean.basis(observations_.points())) {
  if (basis_.cols() > 0)
    mean_covariance_ = basis_ * structure.mean.stddev().cwiseAbs2().asDiagonal() * basis_.transpose();
}

double HyperparameterPosterior::log_density(const VectorXd& theta, VectorXd* gradient) const {
  const double likelihood = log_marginal_likelihood(theta, gradient);
  return likelihood + log_prior(theta, gradient);
}

double HyperparameterPosterior::log_marginal_likelihood(const VectorXd& theta, VectorXd* gradient) const {
  assert(theta.size() == size());
  const Index n = observations_.size();
  const Index last = theta.size() - 1;
  const double noise_variance = std::exp(2.0 * theta[last]);
  const MergedObservations::Values values = observations_.at(noise_variance);
  if (gradient != nullptr) *gradient = VectorXd::Zero(theta.size());
  MatrixXd covariance = structure_.kernel->gram(observations_.points(), observations_.points(), theta.head(last));
  if (mean_covariance_.size() > 0) covariance += mean_covariance_;
  const double unit = covariance.diagonal().mean();  // the process's own: what has a density can be conditioned
  covariance.diagonal() += values.variance;
  auto factor = cholesky_with_jitter(std::move(covariance), unit);
  if (!factor) return std::numeric_limits<double>::quiet_NaN();
  const auto lower = std::as_const(factor->lower).triangularView<Eigen::Lower>();
  const VectorXd whitened = lower.solve(values.mean - basis_ * structure_.mean.centre());
  const double log_likelihood = -0.5 * whitened.squaredNorm() - factor->lower.diagonal().array().log().sum() -
                                0.5 * static_cast<double>(n) * kLogTwoPi + values.log_spread;
  if (gradient != nullptr) {
    const VectorXd alpha = lower.transpose().solve(whitened);
    MatrixXd weights = inverse_of_product(std::move(factor->lower));
    for (Index j = 0; j < n; ++j) weights.col(j) = (0.5 * alpha[j]) * alpha - 0.5 * weights.col(j);
    gradient->head(last) = structure_.kernel->weighted_gradient(observations_.points(), theta.head(last), weights);
    const double by_noise_variance =
        weights.diagonal().dot(values.variance_slope) - alpha.dot(values.mean_slope) + values.log_spread_slope;
    (*gradient)[last] = 2.0 * noise_variance * by_noise_variance;
  }
  return log_likelihood;
}

/// The prior is that of log s, theta holds log s^2.
HyperparameterPosterior::Entry HyperparameterPosterior::entry(Index i) const {
  const HyperparameterPriors& priors = structure_.priors;
  const auto of = [](const LogNormalPrior& prior, const Interval& interval, double power) {
    return Entry{power * prior.log_median, power * prior.log_stddev, power * std::log(interval.lower),
                 power * std::log(interval.upper)};
  };
  if (i == size() - 1) return of(priors.noise_stddev, kNoiseStddev, 1.0);
  const Hyperparameter& parameter = roles_[static_cast<std::size_t>(i)];
  switch (parameter.role) {
    case Hyperparameter::Role::kLengthscale:
      return of(priors.lengthscale, kLengthscale, 1.0);
    case Hyperparameter::Role::kSignalVariance:
      return of(priors.signal_stddev, kSignalStddev, 2.0);
    case Hyperparameter::Role::kLoading:
      break;
  }
  return {parameter.centre, priors.loading_stddev, kLoading.lower, kLoading.upper};
}

double HyperparameterPosterior::log_prior(const VectorXd& theta, VectorXd* gradient) const {
  double sum = 0.0;
  for (Index i = 0; i < size(); ++i) {
    const Entry prior = entry(i);
    const double z = (theta[i] - prior.mean) / prior.stddev;
    if (gradient != nullptr) (*gradient)[i] -= z / prior.stddev;
    sum -= 0.5 * z * z + std::log(prior.stddev) + 0.5 * kLogTwoPi;
  }
  return sum;
}

VectorXd HyperparameterPosterior::lower_bound() const {
  return VectorXd::NullaryExpr(size(), [this](Index i) { return entry(i).lower; });
}

VectorXd HyperparameterPosterior::upper_bound() const {
  return VectorXd::NullaryExpr(size(), [this](Index i) { return entry(i).upper; });
}

VectorXd HyperparameterPosterior::prior_mode() const {
  const VectorXd mode = VectorXd::NullaryExpr(size(), [this](Index i) { return entry(i).mean; });
  return mode.cwiseMax(lower_bound()).cwiseMin(upper_bound());
}

VectorXd HyperparameterPosterior::draw(Rng& rng) const {
  VectorXd drawn(size());
  for (Index i = 0; i < size(); ++i) drawn[i] = entry(i).mean + entry(i).stddev * rng.normal();
  return drawn.cwiseMax(lower_bound()).cwiseMin(upper_bound());
}

}  // namespace krigtune
