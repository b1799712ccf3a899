// Gaussian-process classification with a probit link by expectation propagation (Rasmussen & Williams 2006,
// sections 3.6 and 3.9):
//
//   P(success | f) = Phi(f) = P(f + Normal(0, 1) >= 0)
//   f(x) = m(x) + a + g(x),   a ~ Normal(0, offset_stddev^2),   g a Gaussian process
//   P(success at x) = E Phi(f) = Phi(mu / sqrt(1 + variance))        exactly, for f ~ Normal(mu, variance)
//
// An outcome is thus a bound of 0 on a value of f with noise of variance 1; the substitutes of the bounds make a
// GaussianProcess, which does the rest. m is its one feature, with a coefficient of 1 that nothing can change.
// g's covariance may hold a linear trend, slope_stddev^2 (x - c) . (y - c), c the cube's centre (section 2.7).
#include "krigtune/surrogate/success_model.h"

#include <cassert>
#include <cmath>
#include <utility>

#include "expectation_propagation.h"
#include "krigtune/core/error.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kHalfLogTwoPi = 0.91893853320467274178;

/// A kernel plus slope_variance (x - c) . (y - c) over the ordered columns, c the cube's centre.
class TrendedKernel final : public Kernel {
 public:
  TrendedKernel(std::shared_ptr<const Kernel> kernel, double slope_variance)
      : kernel_(std::move(kernel)), slope_variance_(slope_variance) {}

  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    return kernel_->hyperparameters(ordered_dims, category_dims);
  }
  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    MatrixXd result = kernel_->gram(x, y, theta);
    result.noalias() += slope_variance_ * from_centre(x) * from_centre(y).transpose();
    return result;
  }
  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    return kernel_->diagonal(x, theta) + slope_variance_ * from_centre(x).rowwise().squaredNorm();
  }
  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    return kernel_->weighted_gradient(x, theta, weights);
  }
  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    return kernel_->input_gradient(z, x, theta, weights) + slope_variance_ * from_centre(x).transpose() * weights;
  }

 private:
  static MatrixXd from_centre(const Points& x) { return x.ordered.array() - 0.5; }

  std::shared_ptr<const Kernel> kernel_;
  double slope_variance_;
};

std::shared_ptr<const Kernel> with_trend(std::shared_ptr<const Kernel> kernel, const SuccessOptions& options) {
  options.validate();
  if (options.slope_stddev == 0.0) return kernel;
  return std::make_shared<TrendedKernel>(std::move(kernel), options.slope_stddev * options.slope_stddev);
}

/// log Phi(mean / sqrt(1 + variance)).
class LogSuccessProbability final : public Acquisition {
 public:
  AcquisitionValue at(double mean, double variance) const override {
    const double scale = std::sqrt(1.0 + variance);
    const double z = mean / scale;
    const double value = log_normal_cdf(z);
    const double slope = std::exp(-0.5 * z * z - kHalfLogTwoPi - value);
    return {value, slope / scale, -0.5 * slope * z / (1.0 + variance)};
  }
  VectorXd values(const Prediction& prediction) const override {
    return prediction.mean.binaryExpr(prediction.variance, [](double mean, double variance) {
      return log_normal_cdf(mean / std::sqrt(1.0 + variance));
    });
  }
};

}  // namespace

void SuccessOptions::validate() const {
  if (!(signal_stddev > 0.0 && lengthscale > 0.0)) throw UserError("success model: signal and lengthscale must be > 0");
  if (!(offset_stddev >= 0.0 && slope_stddev >= 0.0)) throw UserError("success model: a stddev must not be negative");
}

SuccessModel::SuccessModel(std::shared_ptr<const Kernel> kernel, SuccessOptions options)
    : kernel_(with_trend(std::move(kernel), options)),
      options_(options),
      latent_(kernel_, Mean::scaled(options.offset_stddev, 0.0)) {}

/// [the kernel's, log noise stddev = 0].
VectorXd SuccessModel::theta(const Points& points) const {
  const auto parameters = kernel_->hyperparameters(points.ordered.cols(), points.categories.cols());
  VectorXd theta = VectorXd::Zero(static_cast<Index>(parameters.size()) + 1);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    double& entry = theta[static_cast<Index>(i)];
    switch (parameters[i].role) {
      case Hyperparameter::Role::kLengthscale:
        entry = std::log(options_.lengthscale);
        break;
      case Hyperparameter::Role::kSignalVariance:
        entry = 2.0 * std::log(options_.signal_stddev);
        break;
      case Hyperparameter::Role::kLoading:
        entry = parameters[i].centre;
        break;
    }
  }
  return theta;
}

SuccessFit SuccessModel::fit(const Points& points, const VectorXd& prior_mean, const std::vector<bool>& succeeded) {
  const Index n = points.size();
  if (prior_mean.size() != n || static_cast<Index>(succeeded.size()) != n || !prior_mean.allFinite())
    throw UserError("success model: every point needs one outcome and one finite prior mean");
  const Points known{points.ordered, points.categories, prior_mean};
  latent_.condition({known.slice(0, 0), {}, {}}, theta(points));
  if (n == 0) return {true, 0, 0.0};
  ProbitSites sites{VectorXd(n), VectorXd::Zero(n), latent_.noise_stddev()};
  for (Index i = 0; i < n; ++i) sites.sign[i] = succeeded[static_cast<std::size_t>(i)] ? 1.0 : -1.0;
  const SiteSubstitutes substitutes = propagate_expectations(latent_, known, sites);
  latent_.condition({known, substitutes.value, substitutes.variance}, theta(points));
  return {substitutes.converged, substitutes.sweeps, substitutes.log_evidence};
}

VectorXd SuccessModel::probability(const Points& points, const VectorXd& prior_mean) const {
  assert(prior_mean.size() == points.size());
  return LogSuccessProbability().values(latent_.predict({points.ordered, points.categories, prior_mean})).array().exp();
}

/// As the latent process knows them.
Points SuccessModel::with_mean(const Points& points) const {
  if (!options_.mean_feature) return {points.ordered, points.categories, MatrixXd::Zero(points.size(), 1)};
  assert(*options_.mean_feature < points.features.cols());
  return {points.ordered, points.categories, points.features.col(*options_.mean_feature)};
}

Prediction SuccessModel::predict(const Points& points) const { return latent_.predict(with_mean(points)); }

PredictionGradient SuccessModel::predict_with_gradient(const Points& point) const {
  return latent_.predict_with_gradient(with_mean(point));
}

std::unique_ptr<Acquisition> make_log_success_probability() { return std::make_unique<LogSuccessProbability>(); }

}  // namespace krigtune
