// What the maximum-a-posteriori fit maximises, and its gradient.
//
//   log p(y | X, theta) = -1/2 y^T alpha - sum_i log L_ii - n/2 log 2 pi,   K_y = L L^T,   alpha = K_y^-1 y
//   d / d theta_p       = sum_ij W_ij dK_y,ij / d theta_p,   W = (alpha alpha^T - K_y^-1) / 2
//
// (Rasmussen & Williams 2006, eq. 2.30 and 5.9). Priors: normal in log l, log s and log noise stddev, as densities of
// these logarithms (no Jacobian of exp).
#include "hyperparameter_posterior.h"

#include <Eigen/Cholesky>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "cholesky.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kLogTwoPi = 1.8378770664093454836;

// The box: with the signal's stddev at most 1e2 and the noise's at least 1e-4 of the outputs' stddev, the condition
// number of K_y stays below 1e12 n, which double precision factorises (rarely with help of the jitter). A lengthscale
// below 0.01 makes points on any grid of the unit cube independent, one above 100 makes a dimension irrelevant.
struct Interval {
  double lower;
  double upper;
};
constexpr Interval kLengthscale{1e-2, 1e2};
constexpr Interval kSignalStddev{1e-2, 1e2};
constexpr Interval kNoiseStddev{1e-4, 1e1};

/// Log-density of Normal(prior.log_median, prior.log_stddev^2) at log_value; adds `chain` times its slope.
double log_normal_density(const LogNormalPrior& prior, double log_value, double chain, double* slope) {
  const double z = (log_value - prior.log_median) / prior.log_stddev;
  if (slope != nullptr) *slope -= chain * z / prior.log_stddev;
  return -0.5 * z * z - std::log(prior.log_stddev) - 0.5 * kLogTwoPi;
}

}  // namespace

MatrixXd noisy_covariance(const Kernel& kernel, const Points& points, const VectorXd& known_variance,
                          const VectorXd& theta) {
  const Index last = theta.size() - 1;
  MatrixXd covariance = kernel.gram(points, points, theta.head(last));
  covariance.diagonal().array() += known_variance.array() + std::exp(2.0 * theta[last]);
  return covariance;
}

HyperparameterPosterior::HyperparameterPosterior(const Kernel& kernel, const GpOptions& options, const Points& points,
                                                 const VectorXd& outputs, const VectorXd& known_variance)
    : kernel_(kernel), options_(options), points_(points), outputs_(outputs), known_variance_(known_variance) {
  assert(points.size() >= 1 && outputs.size() == points.size() && known_variance.size() == points.size());
}

Index HyperparameterPosterior::size() const {
  return kernel_.parameter_count(points_.ordered.cols(), points_.categories.cols()) + 1;
}

double HyperparameterPosterior::log_density(const VectorXd& theta, VectorXd* gradient) const {
  const double likelihood = log_marginal_likelihood(theta, gradient);
  return likelihood + log_prior(theta, gradient);
}

double HyperparameterPosterior::log_marginal_likelihood(const VectorXd& theta, VectorXd* gradient) const {
  assert(theta.size() == size());
  const Index n = points_.size();
  if (gradient != nullptr) *gradient = VectorXd::Zero(theta.size());
  const auto factor = cholesky_with_jitter(noisy_covariance(kernel_, points_, known_variance_, theta));
  if (!factor) return std::numeric_limits<double>::quiet_NaN();
  const auto lower = std::as_const(factor->lower).triangularView<Eigen::Lower>();
  const VectorXd whitened = lower.solve(outputs_);
  if (gradient != nullptr) {
    const VectorXd alpha = lower.transpose().solve(whitened);
    const MatrixXd inverse_lower = lower.solve(MatrixXd::Identity(n, n));
    MatrixXd weights = -0.5 * inverse_lower.transpose() * inverse_lower;
    weights += 0.5 * alpha * alpha.transpose();
    const Index last = theta.size() - 1;
    gradient->head(last) = kernel_.weighted_gradient(points_, theta.head(last), weights);
    (*gradient)[last] = 2.0 * std::exp(2.0 * theta[last]) * weights.trace();
  }
  return -0.5 * whitened.squaredNorm() - factor->lower.diagonal().array().log().sum() -
         0.5 * static_cast<double>(n) * kLogTwoPi;
}

double HyperparameterPosterior::log_prior(const VectorXd& theta, VectorXd* gradient) const {
  const Index signal = theta.size() - 2;
  const auto slope = [gradient](Index i) { return gradient != nullptr ? &(*gradient)[i] : nullptr; };
  double sum = 0.0;
  for (Index i = 0; i < signal; ++i) sum += log_normal_density(options_.lengthscale, theta[i], 1.0, slope(i));
  // The parameter is log s^2, the prior is that of log s.
  sum += log_normal_density(options_.signal_stddev, 0.5 * theta[signal], 0.5, slope(signal));
  sum += log_normal_density(options_.noise_stddev, theta[signal + 1], 1.0, slope(signal + 1));
  return sum;
}

/// `get` makes a log of a stddev or lengthscale from (its prior, its interval).
template <class Get>
VectorXd HyperparameterPosterior::assemble(Get get) const {
  VectorXd theta(size());
  const Index signal = size() - 2;
  for (Index i = 0; i < signal; ++i) theta[i] = get(options_.lengthscale, kLengthscale);
  theta[signal] = 2.0 * get(options_.signal_stddev, kSignalStddev);
  theta[signal + 1] = get(options_.noise_stddev, kNoiseStddev);
  return theta;
}

VectorXd HyperparameterPosterior::lower_bound() const {
  return assemble([](const LogNormalPrior&, const Interval& interval) { return std::log(interval.lower); });
}

VectorXd HyperparameterPosterior::upper_bound() const {
  return assemble([](const LogNormalPrior&, const Interval& interval) { return std::log(interval.upper); });
}

VectorXd HyperparameterPosterior::prior_mode() const {
  const VectorXd mode = assemble([](const LogNormalPrior& prior, const Interval&) { return prior.log_median; });
  return mode.cwiseMax(lower_bound()).cwiseMin(upper_bound());
}

VectorXd HyperparameterPosterior::draw(Rng& rng) const {
  const VectorXd drawn = assemble([&rng](const LogNormalPrior& prior, const Interval&) {
    return prior.log_median + prior.log_stddev * rng.normal();
  });
  return drawn.cwiseMax(lower_bound()).cwiseMin(upper_bound());
}

}  // namespace krigtune
