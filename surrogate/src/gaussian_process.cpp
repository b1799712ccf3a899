// Gaussian-process regression by Cholesky (Rasmussen & Williams 2006, algorithm 2.1) on standardised outputs.
//
//   K_y = K + diag(known variance) + noise^2 I = L L^T,   alpha = K_y^-1 y
//   mean(x*)     = k*^T alpha
//   variance(x*) = k(x*, x*) - |L^-1 k*|^2      of the noise-free function
//
// Believing a pending point at its own posterior mean leaves alpha as it is (the new entry is 0: kriging believer,
// Ginsbourger, Le Riche & Carraro 2010), so only L grows.
#include "krigtune/surrogate/gaussian_process.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cholesky.h"
#include "hyperparameter_fit.h"
#include "krigtune/core/error.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Candidates scored at once: n x 1024 doubles stay in the cache for the n of tuning sessions.
constexpr Index kBlock = 1024;

/// y = mean + scale * standardised.
struct Standardisation {
  double mean = 0.0;
  double scale = 1.0;
};

/// Sample stddev as scale; 1 where there is none: a single value, or values equal to within rounding.
Standardisation standardise(const VectorXd& values) {
  Standardisation result{values.mean(), 1.0};
  if (values.size() < 2) return result;
  const double stddev =
      (values.array() - result.mean).matrix().stableNorm() / std::sqrt(static_cast<double>(values.size() - 1));
  if (stddev > 1e-12 * values.cwiseAbs().maxCoeff()) result.scale = stddev;
  return result;
}

void check(const LogNormalPrior& prior, const char* name) {
  if (!std::isfinite(prior.log_median)) throw UserError(std::string(name) + ": the prior's median must be finite");
  if (!(prior.log_stddev > 0.0 && std::isfinite(prior.log_stddev)))
    throw UserError(std::string(name) + ": the prior's stddev must be positive");
}

}  // namespace

void GpOptions::validate() const {
  check(lengthscale, "lengthscale");
  check(signal_stddev, "signal_stddev");
  check(noise_stddev, "noise_stddev");
  if (random_starts < 0) throw UserError("random_starts must not be negative");
}

struct GaussianProcess::State {
  std::unique_ptr<Kernel> kernel;
  GpOptions options;
  Points points;  ///< observed, then believed
  Standardisation output;
  VectorXd known_variance;  ///< n, standardised
  VectorXd theta;
  MatrixXd lower;  ///< L of all points
  VectorXd alpha;  ///< of the observed points; the believed ones' entries are 0
  double jitter = 0.0;

  VectorXd kernel_theta() const { return theta.head(theta.size() - 1); }
  /// Takes the data and returns the standardised outputs.
  VectorXd observe(const Points& observed, const VectorXd& values, const VectorXd& variance);
  void factorise(const VectorXd& outputs);
};

VectorXd GaussianProcess::State::observe(const Points& observed, const VectorXd& values, const VectorXd& variance) {
  assert(observed.size() >= 1 && values.size() == observed.size());
  assert(variance.size() == 0 || variance.size() == values.size());
  assert(values.allFinite() && observed.ordered.allFinite());
  points = observed;
  output = standardise(values);
  known_variance = VectorXd::Zero(values.size());
  if (variance.size() > 0) known_variance = variance / output.scale / output.scale;
  return (values.array() - output.mean) / output.scale;
}

void GaussianProcess::State::factorise(const VectorXd& outputs) {
  auto factor = cholesky_with_jitter(noisy_covariance(*kernel, points, known_variance, theta));
  if (!factor) throw std::domain_error("the covariance of the observations is not positive definite");
  lower = std::move(factor->lower);
  jitter = factor->jitter;
  const auto triangle = std::as_const(lower).triangularView<Eigen::Lower>();
  alpha = triangle.transpose().solve(triangle.solve(outputs));
}

GaussianProcess::GaussianProcess(std::unique_ptr<Kernel> kernel, GpOptions options)
    : state_(std::make_unique<State>()) {
  options.validate();
  state_->kernel = std::move(kernel);
  state_->options = options;
}

GaussianProcess::~GaussianProcess() = default;
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;

FitReport GaussianProcess::fit(const Points& points, const VectorXd& values, const VectorXd& known_variance, Rng& rng,
                               const std::optional<VectorXd>& start) {
  State& state = *state_;
  const VectorXd outputs = state.observe(points, values, known_variance);
  const HyperparameterPosterior posterior(*state.kernel, state.options, state.points, outputs, state.known_variance);
  FittedHyperparameters fitted = fit_hyperparameters(posterior, state.options.random_starts, rng, start);
  state.theta = std::move(fitted.theta);
  state.factorise(outputs);
  fitted.report.jitter = state.jitter;
  return fitted.report;
}

void GaussianProcess::condition(const Points& points, const VectorXd& values, const VectorXd& known_variance,
                                const VectorXd& hyperparameters) {
  State& state = *state_;
  const VectorXd outputs = state.observe(points, values, known_variance);
  state.theta = hyperparameters;
  assert(state.theta.size() == state.kernel->parameter_count(points.ordered.cols(), points.categories.cols()) + 1);
  state.factorise(outputs);
}

void GaussianProcess::believe(const Points& pending) {
  State& state = *state_;
  assert(state.alpha.size() > 0);
  if (pending.size() == 0) return;
  const MatrixXd cross = state.kernel->gram(state.points, pending, state.kernel_theta());
  MatrixXd block = noisy_covariance(*state.kernel, pending, VectorXd::Zero(pending.size()), state.theta);
  block.diagonal().array() += state.jitter;
  auto extended = extend_cholesky(state.lower, cross, block);
  if (!extended) throw std::domain_error("the covariance of the pending points is not positive definite");
  state.lower = std::move(*extended);
  state.points.append(pending);
}

Prediction GaussianProcess::predict(const Points& points) const {
  const State& state = *state_;
  assert(state.alpha.size() > 0);
  const VectorXd theta = state.kernel_theta();
  const double scale = state.output.scale;
  Prediction prediction{VectorXd(points.size()), VectorXd(points.size())};
  for (Index first = 0; first < points.size(); first += kBlock) {
    const Index count = std::min(kBlock, points.size() - first);
    const Points block = points.slice(first, count);
    MatrixXd cross = state.kernel->gram(state.points, block, theta);
    prediction.mean.segment(first, count).noalias() = cross.topRows(state.alpha.size()).transpose() * state.alpha;
    state.lower.triangularView<Eigen::Lower>().solveInPlace(cross);
    prediction.variance.segment(first, count) =
        state.kernel->diagonal(block, theta) - cross.colwise().squaredNorm().transpose();
  }
  prediction.mean = (state.output.mean + scale * prediction.mean.array()).matrix();
  // Rounding may leave a variance of -1e-16 at an observed point.
  prediction.variance = (scale * scale) * prediction.variance.cwiseMax(0.0);
  return prediction;
}

const VectorXd& GaussianProcess::hyperparameters() const { return state_->theta; }

double GaussianProcess::noise_stddev() const {
  return state_->output.scale * std::exp(state_->theta[state_->theta.size() - 1]);
}

}  // namespace krigtune
