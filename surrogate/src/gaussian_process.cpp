// Gaussian-process regression by Cholesky (Rasmussen & Williams 2006, algorithm 2.1). The mean function's coefficients
// beta ~ Normal(b, B) are integrated out, which adds a covariance of rank p (section 2.7):
//
//   C(x, y)      = k(x, y) + h(x)^T B h(y)
//   C_y          = C(X, X) + diag(noise) = L L^T,   w = L^-1 (y - H b)
//   V            = L^-1 C(X, x*)
//   mean(x*)     = h(x*)^T b + V^T w
//   variance(x*) = C(x*, x*) - |V|^2        of the noise-free function
//   beta | y     ~ Normal(b + G^T w, B - G^T G),   G = L^-1 H B
//
// Believing a pending point at its own posterior mean makes the new entry of w zero (kriging believer, Ginsbourger, Le
// Riche & Carraro 2010), so only L grows. A draw of the value that it will have makes that entry standard normal.
#include "krigtune/surrogate/gaussian_process.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "cholesky.h"
#include "core/error.h"
#include "merged_observations.h"
#include "vector_unit/normal_tails.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Number of candidates predicted at once: 256 x n doubles fit into a second-level cache of 1 MB up to n = 500.
constexpr Index kBlock = 256;

void extend(VectorXd& vector, const VectorXd& more) {
  const Index before = vector.size();
  vector.conservativeResize(before + more.size());
  vector.tail(more.size()) = more;
}

}  // namespace

GaussianProcess::GaussianProcess(std::shared_ptr<const Kernel> kernel, Mean mean)
    : kernel_(std::move(kernel)), mean_(std::move(mean)) {}

VectorXd GaussianProcess::kernel_theta() const { return theta_.head(theta_.size() - 1); }

double GaussianProcess::noise_stddev() const { return std::exp(theta_[theta_.size() - 1]); }

VectorXd GaussianProcess::prior_mean(const Points& points) const { return mean_.basis(points) * mean_.centre(); }

VectorXd GaussianProcess::prior_variance(const Points& points) const {
  return kernel_->diagonal(points, kernel_theta()) +
         (mean_.basis(points) * mean_.stddev().asDiagonal()).rowwise().squaredNorm();
}

MatrixXd GaussianProcess::prior_covariance(const Points& x, const Points& y) const {
  MatrixXd covariance = kernel_->gram(x, y, kernel_theta());
  if (mean_.centre().size() > 0)
    covariance.noalias() += mean_.basis(x) * mean_.stddev().cwiseAbs2().asDiagonal() * mean_.basis(y).transpose();
  return covariance;
}

void GaussianProcess::check_theta(const Points& points, const VectorXd& theta) const {
  const auto kernels = kernel_->hyperparameters(points.ordered.cols(), points.categories.cols()).size();
  if (theta.size() != static_cast<Index>(kernels) + 1 || !theta.allFinite())
    throw UserError("theta must be " + std::to_string(kernels) +
                    " finite numbers for the kernel and the logarithm of the noise's stddev");
}

void GaussianProcess::condition(const Observations& observations, const VectorXd& theta) {
  mean_.validate(observations.points);
  check_theta(observations.points, theta);
  if (observations.size() == 0) {
    *this = GaussianProcess(kernel_, mean_);
    theta_ = theta;
    points_ = observations.points;
    return;
  }
  observations.validate();
  theta_ = theta;
  const MergedObservations merged(observations);
  const double noise = noise_stddev();
  const MergedObservations::Values values = merged.at(noise * noise);
  points_ = merged.points();
  values_ = values.mean;
  noise_ = values.variance;
  MatrixXd covariance = prior_covariance(points_, points_);
  // The unit is that of the function alone: an observation with enormous noise does not justify an enormous jitter.
  const double unit = covariance.diagonal().mean();
  covariance.diagonal() += noise_;
  auto factor = cholesky_with_jitter(std::move(covariance), unit);
  if (!factor) throw std::domain_error("the covariance of the observations is not positive definite");
  lower_ = std::move(factor->lower);
  jitter_ = factor->jitter;
  noise_.array() += jitter_;
  whitened_ = lower_.triangularView<Eigen::Lower>().solve(values_ - prior_mean(points_));
}

/// Appends rows with the noise variances `noise`; the caller updates `whitened_`.
void GaussianProcess::add_rows(const Points& points, const VectorXd& noise) {
  const MatrixXd cross = prior_covariance(points_, points);
  MatrixXd block = prior_covariance(points, points);
  block.diagonal() += noise;
  auto extended = extend_cholesky(lower_, cross, block);
  if (!extended) throw std::domain_error("the covariance of the added points is not positive definite");
  lower_ = std::move(*extended);
  points_.append(points);
  extend(noise_, noise);
}

void GaussianProcess::append(const Observations& more) {
  if (more.size() == 0) return;
  more.validate();
  assert(observed() > 0 && observed() == points_.size());
  VectorXd noise = VectorXd::Constant(more.size(), noise_stddev() * noise_stddev() + jitter_);
  if (more.variance.size() > 0) noise += more.variance;
  const Index before = observed();
  add_rows(more.points, noise);
  extend(values_, more.values);
  const VectorXd residual =
      more.values - prior_mean(more.points) - lower_.bottomLeftCorner(more.size(), before) * whitened_;
  extend(whitened_, lower_.bottomRightCorner(more.size(), more.size()).triangularView<Eigen::Lower>().solve(residual));
}

// If the variance was v before, a measurement with noise variance r reduces it to v r / (v + r). If it succeeds only
// with probability p, the expected variance is p v r / (v + r) + (1 - p) v. A measurement with noise (r + (1 - p) v) /
// p gives the same variance.
void GaussianProcess::believe(const Points& pending, const VectorXd& success) {
  if (pending.size() == 0) return;
  assert(observed() > 0 && (success.size() == 0 || success.size() == pending.size()));
  VectorXd noise = VectorXd::Constant(pending.size(), noise_stddev() * noise_stddev() + jitter_);
  if (success.size() > 0) {
    const VectorXd variance = predict(pending).variance.cwiseMax(0.0);
    noise.array() = (noise.array() + (1.0 - success.array()) * variance.array()) / success.array();
  }
  add_rows(pending, noise);
  extend(whitened_, VectorXd::Zero(pending.size()));
}

void GaussianProcess::forget_believed() {
  const Index kept = observed();
  if (points_.size() == kept) return;
  points_ = points_.slice(0, kept);
  noise_.conservativeResize(kept);
  whitened_.conservativeResize(kept);
  lower_ = lower_.topLeftCorner(kept, kept).eval();
}

Prediction GaussianProcess::predict(const Points& points) const {
  assert(theta_.size() > 0);
  Prediction prediction{VectorXd(points.size()), VectorXd(points.size())};
  for (Index first = 0; first < points.size(); first += kBlock) {
    const Index count = std::min(kBlock, points.size() - first);
    const Points block = points.slice(first, count);
    MatrixXd v = prior_covariance(block, points_);
    solve_rows(lower_, v);
    VectorXd mean = prior_mean(block);
    VectorXd explained = VectorXd::Zero(count);
    vector_unit().add_moments(count, v.cols(), v.data(), v.outerStride(), whitened_.data(), mean.data(),
                              explained.data());
    prediction.mean.segment(first, count) = mean;
    prediction.variance.segment(first, count) = prior_variance(block) - explained;
  }
  // Rounding may leave a variance of -1e-16 at an observed point.
  prediction.variance = prediction.variance.cwiseMax(0.0);
  return prediction;
}

PredictionGradient GaussianProcess::predict_with_gradient(const Points& point) const {
  assert(theta_.size() > 0 && point.size() == 1);
  const auto triangle = lower_.triangularView<Eigen::Lower>();
  const VectorXd theta = kernel_theta();
  const VectorXd v = triangle.solve(prior_covariance(points_, point)).col(0);
  const VectorXd mean_weights = triangle.transpose().solve(whitened_);
  const VectorXd variance_weights = triangle.transpose().solve(v);
  PredictionGradient result;
  result.mean = prior_mean(point)[0] + v.dot(whitened_);
  result.variance = std::max(prior_variance(point)[0] - v.squaredNorm(), 0.0);
  result.mean_gradient = kernel_->input_gradient(point, points_, theta, mean_weights);
  // d k(z, z) / dz is twice the derivative with respect to one argument.
  result.variance_gradient = 2.0 * kernel_->input_gradient(point, point, theta, VectorXd::Ones(1)) -
                             2.0 * kernel_->input_gradient(point, points_, theta, variance_weights);
  return result;
}

MatrixXd GaussianProcess::posterior_covariance(const Points& points) const {
  MatrixXd v = prior_covariance(points, points_);
  solve_rows(lower_, v);
  MatrixXd covariance = prior_covariance(points, points);
  vector_unit().subtract_product(v.rows(), v.rows(), v.cols(), v.data(), v.outerStride(), v.data(), v.outerStride(),
                                 covariance.data(), covariance.outerStride());
  return covariance;
}

/// Rasmussen & Williams 2006, eq. 5.12.
LeaveOneOut GaussianProcess::leave_one_out() const {
  const Index n = observed();
  const auto triangle = lower_.topLeftCorner(n, n).triangularView<Eigen::Lower>();
  const VectorXd precision = inverse_of_product(lower_.topLeftCorner(n, n)).diagonal();
  const VectorXd alpha = triangle.transpose().solve(whitened_.head(n));
  return {values_ - alpha.cwiseQuotient(precision), precision.cwiseInverse()};
}

Coefficients GaussianProcess::coefficients() const {
  if (mean_.centre().size() == 0) return {};
  const Index n = observed();
  const MatrixXd scaled = mean_.basis(points_).topRows(n) * mean_.stddev().cwiseAbs2().asDiagonal();
  const MatrixXd g = lower_.topLeftCorner(n, n).triangularView<Eigen::Lower>().solve(scaled);
  MatrixXd covariance = mean_.stddev().cwiseAbs2().asDiagonal();
  covariance.noalias() -= g.transpose() * g;
  return {mean_.centre() + g.transpose() * whitened_.head(n), covariance};
}

double GaussianProcess::log_marginal_likelihood() const {
  const Index n = observed();
  return -0.5 * whitened_.head(n).squaredNorm() - lower_.diagonal().head(n).array().log().sum() -
         0.5 * static_cast<double>(n) * kLogTwoPi;
}

double LeaveOneOut::coverage(const VectorXd& values, double level) const {
  // A value is inside the central interval of probability `level` if erf(|z| / sqrt 2) <= level.
  const Eigen::ArrayXd z = (values - mean).array().abs() / variance.array().sqrt();
  return z.unaryExpr([level](double x) { return std::erf(x / std::sqrt(2.0)) <= level ? 1.0 : 0.0; }).mean();
}

double LeaveOneOut::log_density(const VectorXd& values) const {
  return -0.5 * ((values - mean).array().square() / variance.array() + variance.array().log() + kLogTwoPi).sum();
}

}  // namespace krigtune::surrogate
