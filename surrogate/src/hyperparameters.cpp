// Multi-start maximum a posteriori. The marginal likelihood of a few points has several modes (a smooth function with
// much noise, or a rough one with little noise), and a single start finds the wrong one in about a tenth of the cases.
#include "krigtune/surrogate/hyperparameters.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cholesky.h"
#include "core/error.h"
#include "hyperparameters.h"
#include "nlopt_minimizer.h"
#include "vector_unit/normal_tails.h"

namespace krigtune::surrogate {
namespace {

using Eigen::VectorXd;

void check_start(const HyperparameterPosterior& posterior, const VectorXd& start) {
  if (start.size() != posterior.size())
    throw UserError("a fit cannot start at a theta of " + std::to_string(start.size()) + " numbers, it has " +
                    std::to_string(posterior.size()));
}

std::vector<VectorXd> starting_points(const HyperparameterPosterior& posterior, int random_starts, Rng& rng,
                                      const std::optional<VectorXd>& start) {
  std::vector<VectorXd> starts{posterior.prior_mode()};
  if (start) {
    check_start(posterior, *start);
    starts.push_back(*start);
  }
  for (int i = 0; i < random_starts; ++i) starts.push_back(posterior.draw(rng));
  return starts;
}

void check(const LogNormalPrior& prior, const char* name) {
  if (!std::isfinite(prior.log_median)) throw UserError(std::string(name) + ": the prior's median must be finite");
  if (!(prior.log_stddev > 0.0 && std::isfinite(prior.log_stddev)))
    throw UserError(std::string(name) + ": the prior's stddev must be positive");
}

FittedHyperparameters fit_from(const HyperparameterPosterior& posterior, const std::vector<VectorXd>& starts) {
  const DifferentiableFunction negative = [&posterior](const VectorXd& theta, VectorXd& gradient) {
    const double value = posterior.log_density(theta, &gradient);
    gradient = -gradient;
    return -value;
  };
  const VectorXd lower = posterior.lower_bound();
  const VectorXd upper = posterior.upper_bound();

  Minimum best;
  int evaluations = 0;
  std::size_t winner = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    Minimum found = minimize_in_box(negative, starts[i], lower, upper);
    evaluations += found.evaluations;
    if (i > 0 && !(found.value < best.value)) continue;
    best = std::move(found);
    winner = i + 1;
  }

  FittedHyperparameters fitted;
  fitted.theta = best.point.size() > 0 ? best.point : posterior.prior_mode();
  fitted.report.termination = best.termination;
  fitted.report.message = best.message + ", start " + std::to_string(winner) + " of " + std::to_string(starts.size());
  fitted.report.evaluations = evaluations;
  fitted.report.log_posterior = -best.value;
  return fitted;
}

}  // namespace

void HyperparameterPriors::validate() const {
  check(lengthscale, "lengthscale");
  check(signal_stddev, "signal_stddev");
  check(noise_stddev, "noise_stddev");
}

VectorXd uniform_theta(const std::vector<Hyperparameter>& parameters, double lengthscale, double signal_stddev) {
  VectorXd theta(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_lengthscale = parameters[i].role == Hyperparameter::Role::kLengthscale;
    theta[static_cast<Eigen::Index>(i)] = is_lengthscale ? std::log(lengthscale) : 2.0 * std::log(signal_stddev);
  }
  return theta;
}

VectorXd uniform_theta(const Kernel& kernel, const Points& points, double lengthscale, double signal_stddev,
                       double noise_stddev) {
  const VectorXd of_kernel = uniform_theta(kernel.hyperparameters(points.ordered.cols(), points.categories.cols()),
                                           lengthscale, signal_stddev);
  VectorXd theta(of_kernel.size() + 1);
  theta << of_kernel, std::log(noise_stddev);
  return theta;
}

FittedHyperparameters fit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                          int random_starts, Rng& rng, const std::optional<VectorXd>& start) {
  const HyperparameterPosterior posterior(structure, observations);
  return fit_from(posterior, starting_points(posterior, random_starts, rng, start));
}

FittedHyperparameters refit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                            const VectorXd& start) {
  const HyperparameterPosterior posterior(structure, observations);
  check_start(posterior, start);
  return fit_from(posterior, {start});
}

// The function that the maximum-a-posteriori fit maximises, and its gradient.
//
//   log p(y | X, theta) = -1/2 |w|^2 - sum_i log L_ii - n/2 log 2 pi + log_spread,   w = L^-1 (y - H b)
//   d / d theta_p       = sum_ij W_ij dC_ij / d theta_p,   W = (alpha alpha^T - C_y^-1) / 2,   alpha = L^-T w
//
// with C_y = K + H B H^T + diag(noise) = L L^T of the merged observations (Rasmussen & Williams 2006, eq. 2.30
// and 5.9). The priors are normal in log l, log s and log noise stddev, as densities of these (without the Jacobian of
// exp).
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// The bounds. If the signal's stddev is at most 1e2 and the noise's at least 1e-4 of the outputs' stddev, the condition
// number of C_y stays below 1e12 n, which can be factorised in double precision (rarely with the help of the jitter). A
// lengthscale below 0.01 makes the points of any grid in the unit cube independent; one above 100 makes a dimension
// irrelevant.
struct Interval {
  double lower;
  double upper;
};
constexpr Interval kLengthscale{1e-2, 1e2};
constexpr Interval kSignalStddev{1e-2, 1e2};
constexpr Interval kNoiseStddev{1e-4, 1e1};

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
  const double unit =
      covariance.diagonal().mean();  // as in the process, so that whatever has a density can be conditioned on
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

/// The prior is for log s, but theta contains log s^2.
HyperparameterPosterior::Entry HyperparameterPosterior::entry(Index i) const {
  const HyperparameterPriors& priors = structure_.priors;
  const auto of = [](const LogNormalPrior& prior, const Interval& interval, double power) {
    return Entry{power * prior.log_median, power * prior.log_stddev, power * std::log(interval.lower),
                 power * std::log(interval.upper)};
  };
  if (i == size() - 1) return of(priors.noise_stddev, kNoiseStddev, 1.0);
  if (roles_[static_cast<std::size_t>(i)].role == Hyperparameter::Role::kLengthscale)
    return of(priors.lengthscale, kLengthscale, 1.0);
  return of(priors.signal_stddev, kSignalStddev, 2.0);
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

}  // namespace krigtune::surrogate
