// Gaussian-process classification by Laplace's approximation around the mode of
//
//   psi(f) = sum_i log sigmoid(t_i f_i) - 1/2 (f - m)^T K^-1 (f - m),   t_i = +1 succeeded, -1 failed
//   f = m + K a;   at the mode a = d log p / d f;   W = diag(pi (1 - pi)),   B = I + W^1/2 K W^1/2
//
// (Rasmussen & Williams 2006, algorithms 3.1 and 3.2, with a mean m). psi is concave, but a full Newton step can
// overshoot where the prior mean is far from the outcomes: steps are halved until psi rises.
// K = kernel + offset_stddev^2 + slope_stddev^2 (x - c) . (y - c), c the cube's centre, over the ordered columns: a
// common offset and a linear trend are integrated out (Rasmussen & Williams 2006, section 2.7, with proper priors).
//   P(success at x*) = sigmoid(mu / sqrt(1 + pi/8 var))    (MacKay 1992)
#include "krigtune/surrogate/success_model.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

namespace krigtune {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMaxNewtonSteps = 100;
constexpr int kMaxHalvings = 40;
constexpr double kTolerance = 1e-12;  // of psi, relative; a Newton step squares the error, so the mode has it too
constexpr Index kBlock = 1024;

double sigmoid(double z) { return z >= 0.0 ? 1.0 / (1.0 + std::exp(-z)) : std::exp(z) / (1.0 + std::exp(z)); }

/// log sigmoid(z) without overflow.
double log_sigmoid(double z) { return z >= 0.0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z)); }

MatrixXd from_centre(const Points& x) { return x.ordered.array() - 0.5; }

/// psi and where it was taken: f = m + K a.
struct Iterate {
  VectorXd a;
  VectorXd shift;  ///< K a
  double psi;
};

}  // namespace

struct SuccessModel::State {
  std::shared_ptr<const Kernel> kernel;
  SuccessOptions options;
  Points points;
  VectorXd slope;   ///< d log p / d f at the mode
  VectorXd root_w;  ///< sqrt of the diagonal of W
  MatrixXd lower;   ///< of B

  VectorXd theta(const Points& x) const;
  MatrixXd covariance(const Points& x, const Points& y) const;
  VectorXd variance(const Points& x) const;
};

VectorXd SuccessModel::State::theta(const Points& x) const {
  const auto count = static_cast<Index>(kernel->hyperparameters(x.ordered.cols(), x.categories.cols()).size());
  VectorXd log_theta = VectorXd::Constant(count, std::log(options.lengthscale));
  log_theta[count - 1] = 2.0 * std::log(options.signal_stddev);
  return log_theta;
}

MatrixXd SuccessModel::State::covariance(const Points& x, const Points& y) const {
  MatrixXd result = kernel->gram(x, y, theta(x)).array() + options.offset_stddev * options.offset_stddev;
  const double slope_variance = options.slope_stddev * options.slope_stddev;
  if (slope_variance > 0.0) result.noalias() += slope_variance * from_centre(x) * from_centre(y).transpose();
  return result;
}

VectorXd SuccessModel::State::variance(const Points& x) const {
  return kernel->diagonal(x, theta(x)).array() + options.offset_stddev * options.offset_stddev +
         options.slope_stddev * options.slope_stddev * from_centre(x).rowwise().squaredNorm().array();
}

SuccessModel::SuccessModel(std::shared_ptr<const Kernel> kernel, SuccessOptions options)
    : state_(std::make_unique<State>()) {
  assert(options.signal_stddev > 0.0 && options.lengthscale > 0.0 && options.offset_stddev >= 0.0 &&
         options.slope_stddev >= 0.0);
  state_->kernel = std::move(kernel);
  state_->options = options;
}

SuccessModel::~SuccessModel() = default;

namespace {

/// The classification problem of one fit.
struct Laplace {
  const MatrixXd& covariance;
  const VectorXd& mean;
  VectorXd sign;  ///< +1 or -1

  Iterate at(VectorXd a) const {
    Iterate iterate{std::move(a), {}, 0.0};
    iterate.shift = covariance * iterate.a;
    iterate.psi = -0.5 * iterate.a.dot(iterate.shift);
    for (Index i = 0; i < sign.size(); ++i) iterate.psi += log_sigmoid(sign[i] * (mean[i] + iterate.shift[i]));
    return iterate;
  }
  VectorXd latent(const Iterate& iterate) const { return mean + iterate.shift; }
  VectorXd slope(const VectorXd& f) const {
    // t sigmoid(-t f): no cancellation where the outcome is certain.
    return sign.binaryExpr(f, [](double t, double value) { return t * sigmoid(-t * value); });
  }
  static VectorXd root_w(const VectorXd& f) {
    return f.unaryExpr([](double value) { return std::sqrt(sigmoid(value) * sigmoid(-value)); });
  }
  MatrixXd factor(const VectorXd& root) const {
    MatrixXd b = root.asDiagonal() * covariance * root.asDiagonal();
    b.diagonal().array() += 1.0;
    return b.llt().matrixL();  // eigenvalues >= 1
  }
  /// Full Newton step: the next a.
  VectorXd newton(const Iterate& iterate) const {
    const VectorXd f = latent(iterate);
    const VectorXd root = root_w(f);
    const MatrixXd lower = factor(root);
    const auto triangle = lower.triangularView<Eigen::Lower>();
    const VectorXd b = root.array().square() * iterate.shift.array() + slope(f).array();
    const VectorXd inner = triangle.solve((root.array() * (covariance * b).array()).matrix());
    return b.array() - root.array() * triangle.transpose().solve(inner).array();
  }
};

/// The mode, from a = 0.
Iterate find_mode(const Laplace& problem) {
  Iterate current = problem.at(VectorXd::Zero(problem.sign.size()));
  for (int step = 0; step < kMaxNewtonSteps; ++step) {
    const VectorXd direction = problem.newton(current) - current.a;
    Iterate next = problem.at(current.a + direction);
    double fraction = 1.0;
    for (int halving = 0; !(next.psi >= current.psi) && halving < kMaxHalvings; ++halving) {
      fraction *= 0.5;
      next = problem.at(current.a + fraction * direction);
    }
    if (!(next.psi > current.psi)) break;  // at the mode to within rounding
    const double gain = next.psi - current.psi;
    current = std::move(next);
    if (gain <= kTolerance * (1.0 + std::abs(current.psi))) break;
  }
  return current;
}

}  // namespace

void SuccessModel::fit(const Points& points, const VectorXd& prior_logit, const std::vector<bool>& succeeded) {
  State& state = *state_;
  const Index n = points.size();
  assert(prior_logit.size() == n && static_cast<Index>(succeeded.size()) == n && prior_logit.allFinite());
  state.points = points;
  if (n == 0) return;
  const MatrixXd covariance = state.covariance(points, points);
  Laplace problem{covariance, prior_logit, VectorXd(n)};
  for (Index i = 0; i < n; ++i) problem.sign[i] = succeeded[static_cast<std::size_t>(i)] ? 1.0 : -1.0;
  const VectorXd f = problem.latent(find_mode(problem));
  state.slope = problem.slope(f);
  state.root_w = Laplace::root_w(f);
  state.lower = problem.factor(state.root_w);
}

VectorXd SuccessModel::probability(const Points& points, const VectorXd& prior_logit) const {
  const State& state = *state_;
  assert(prior_logit.size() == points.size());
  VectorXd result(points.size());
  for (Index first = 0; first < points.size(); first += kBlock) {
    const Index count = std::min(kBlock, points.size() - first);
    const Points block = points.slice(first, count);
    VectorXd mean = prior_logit.segment(first, count);
    VectorXd variance = state.variance(block);
    if (state.points.size() > 0) {
      MatrixXd cross = state.covariance(state.points, block);
      mean += cross.transpose() * state.slope;
      cross = state.root_w.asDiagonal() * cross;
      state.lower.triangularView<Eigen::Lower>().solveInPlace(cross);
      variance -= cross.colwise().squaredNorm().transpose();
    }
    const ArrayXd damping = (1.0 + std::numbers::pi / 8.0 * variance.array().max(0.0)).sqrt();
    result.segment(first, count) = (mean.array() / damping).unaryExpr([](double z) { return sigmoid(z); });
  }
  return result;
}

}  // namespace krigtune
