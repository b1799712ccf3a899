// Gaussian-process classification with a probit link by expectation propagation (Rasmussen & Williams 2006,
// sections 3.6 and 3.9):
//
//   P(success | f) = Phi(f) = P(f + Normal(0, 1) >= 0)
//   f(x) = m(x) + a + sum_k c_k h_k(x) + g(x),   a ~ Normal(0, offset_stddev^2),   c_k ~ Normal(0, shift_stddev_k^2),
//                                                g a Gaussian process
//   P(success at x) = E Phi(f) = Phi(mu / sqrt(1 + variance))        exactly, for f ~ Normal(mu, variance)
//
// An outcome is therefore a bound of 0 on a value of f with noise of variance 1. The substitutes of the bounds are
// observations of an ordinary GaussianProcess. m is its first feature, with a fixed coefficient of 1; the h_k follow.
// g's kernel may contain a linear trend.
#include "krigtune/surrogate/success_model.h"

#include <cassert>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "expectation_propagation.h"
#include "kernels/kernel_families.h"
#include "krigtune/surrogate/hyperparameters.h"
#include "merged_observations.h"

namespace krigtune::surrogate {

// Bounds in addition to values. Given the values, the latent f at the bounds' points is Gaussian, and expectation
// propagation replaces the bounds by Gaussian observations:
//
//   log p(values, bounds) = log p(values) + log E[ prod_i Phi(t_i (f_i - c_i) / noise stddev) | values ]

namespace {

using Eigen::Index;
using Eigen::VectorXd;

void validate(const Observations& observations, const Bounds& bounds) {
  if (observations.size() + bounds.points.size() == 0)
    throw UserError("no observations: there must be one value or one bound at least");
  if (observations.size() > 0) observations.validate();
  if (bounds.bounds.size() != bounds.points.size()) throw UserError("bounds: every point needs one");
  if (bounds.sign.size() != 0 &&
      (bounds.sign.size() != bounds.points.size() || !(bounds.sign.array().abs() == 1.0).all()))
    throw UserError("bounds: every point needs a sign of 1 or -1, or none does");
  if (!bounds.bounds.allFinite() || !bounds.points.ordered.allFinite() || !bounds.points.features.allFinite())
    throw UserError("bounds: points, features and bounds must be finite");
}

/// Returns log p(values | theta), with every repetition counted.
double log_evidence_of_values(const GaussianProcess& process, const Observations& observations) {
  const double noise = process.noise_stddev();
  return process.log_marginal_likelihood() + MergedObservations(observations).at(noise * noise).log_spread;
}

}  // namespace

CensoredFit condition_on_bounds(std::shared_ptr<const Kernel> kernel, const Mean& mean,
                                const Observations& observations, const Bounds& bounds, const VectorXd& theta) {
  validate(observations, bounds);
  CensoredFit fit{GaussianProcess(std::move(kernel), mean), {}};
  const bool has_values = observations.size() > 0;
  fit.process.condition(has_values ? observations : Observations{bounds.points.slice(0, 0), {}, {}}, theta);
  if (has_values) fit.log_evidence = log_evidence_of_values(fit.process, observations);
  const Index count = bounds.points.size();
  fit.converged = true;
  if (count == 0) return fit;

  const VectorXd sign = bounds.sign.size() == 0 ? VectorXd::Ones(count) : bounds.sign;
  const SiteSubstitutes sites =
      propagate_expectations(fit.process, bounds.points, {sign, bounds.bounds, fit.process.noise_stddev()});
  fit.substitutes = {bounds.points, sites.value, sites.variance};
  fit.converged = sites.converged;
  fit.sweeps = sites.sweeps;
  fit.log_evidence += sites.log_evidence;
  Observations all = observations;
  all.append(fit.substitutes);
  fit.process.condition(all, theta);
  return fit;
}

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

class LogSuccessProbability final : public Acquisition {
 public:
  AcquisitionValue at(double mean, double variance) const override { return above_zero_->at(mean, 1.0 + variance); }
  VectorXd values(const Prediction& latent) const override {
    return above_zero_->values({latent.mean, 1.0 + latent.variance.array()});
  }

 private:
  std::unique_ptr<Acquisition> above_zero_ = make_log_probability_above(0.0);
};

}  // namespace

void SuccessOptions::validate() const {
  if (!(signal_stddev > 0.0 && lengthscale > 0.0)) throw UserError("success model: signal and lengthscale must be > 0");
  bool any_negative = !(offset_stddev >= 0.0 && slope_stddev >= 0.0);
  for (const double stddev : shift_stddevs) any_negative = any_negative || !(stddev >= 0.0);
  if (any_negative) throw UserError("success model: a stddev must not be negative");
}

SuccessModel::SuccessModel(std::shared_ptr<const Kernel> kernel, SuccessOptions options)
    : kernel_(std::move(kernel)), options_(std::move(options)), latent_(kernel_) {
  options_.validate();
}

/// Sets the latent process to its prior for points of this form. The noise has variance 1.
void SuccessModel::assume_prior(const Points& points) {
  const Index d = points.ordered.cols();
  const bool has_trend = options_.slope_stddev > 0.0 && d > 0;
  VectorXd theta = uniform_theta(kernel_->hyperparameters(d, points.categories.cols()), options_.lengthscale,
                                 options_.signal_stddev);
  const Index size = theta.size();
  // For the linear kernel: log lengthscales 0, log s^2. The last entry is log noise stddev.
  theta.conservativeResizeLike(VectorXd::Zero(size + (has_trend ? d + 2 : 1)));
  if (has_trend) theta[size + d] = 2.0 * std::log(options_.slope_stddev);
  const VectorXd centre = VectorXd::Unit(prior_columns(), 0);
  VectorXd stddev = VectorXd::Zero(prior_columns());
  for (Index k = 1; k < stddev.size(); ++k) stddev[k] = options_.shift_stddevs[static_cast<std::size_t>(k - 1)];
  latent_ = GaussianProcess(has_trend ? make_sum({kernel_, make_linear()}) : kernel_,
                            Mean::weighted(options_.offset_stddev, centre, stddev));
  const MatrixXd no_features(0, prior_columns());
  latent_.condition({{points.ordered.topRows(0), points.categories.topRows(0), no_features}, {}, {}}, theta);
}

SuccessFit SuccessModel::fit(const Points& points, const MatrixXd& prior, const std::vector<bool>& succeeded) {
  const Index n = points.size();
  const bool has_prior = prior.rows() == n && (n == 0 || prior.cols() == prior_columns());
  if (!has_prior || static_cast<Index>(succeeded.size()) != n || !prior.allFinite())
    throw UserError("success model: every point needs one outcome and one finite prior mean");
  const Points known{points.ordered, points.categories, prior};
  assume_prior(known);
  if (n == 0) return {true, 0, 0.0};
  ProbitSites sites{VectorXd(n), VectorXd::Zero(n), latent_.noise_stddev()};
  for (Index i = 0; i < n; ++i) sites.sign[i] = succeeded[static_cast<std::size_t>(i)] ? 1.0 : -1.0;
  const SiteSubstitutes substitutes = propagate_expectations(latent_, known, sites);
  latent_.condition({known, substitutes.value, substitutes.variance}, VectorXd(latent_.theta()));
  return {substitutes.converged, substitutes.sweeps, substitutes.log_evidence};
}

VectorXd SuccessModel::probability(const Points& points, const MatrixXd& prior) const {
  assert(prior.rows() == points.size() && prior.cols() == prior_columns());
  return LogSuccessProbability().values(latent_.predict({points.ordered, points.categories, prior})).array().exp();
}

/// Returns the points in the form that the latent process uses.
Points SuccessModel::with_prior(const Points& points) const {
  if (!options_.mean_feature)
    return {points.ordered, points.categories, MatrixXd::Zero(points.size(), prior_columns())};
  assert(*options_.mean_feature + prior_columns() <= points.features.cols());
  return {points.ordered, points.categories, points.features.middleCols(*options_.mean_feature, prior_columns())};
}

Prediction SuccessModel::predict(const Points& points) const { return latent_.predict(with_prior(points)); }

PredictionGradient SuccessModel::predict_with_gradient(const Points& point) const {
  return latent_.predict_with_gradient(with_prior(point));
}

std::unique_ptr<Acquisition> make_log_success_probability() { return std::make_unique<LogSuccessProbability>(); }

}  // namespace krigtune::surrogate
