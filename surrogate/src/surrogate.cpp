#include "krigtune/surrogate/surrogate.h"

#include <cassert>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Returns the sample stddev, or 1 for a single value or values that are equal to within rounding.
double spread_of(const VectorXd& values) {
  if (values.size() < 2) return 1.0;
  const double stddev =
      (values.array() - values.mean()).matrix().stableNorm() / std::sqrt(static_cast<double>(values.size() - 1));
  return stddev > 1e-12 * values.cwiseAbs().maxCoeff() ? stddev : 1.0;
}

}  // namespace

void SurrogateOptions::validate() const {
  priors.validate();
  if (random_starts < 0) throw UserError("random_starts must not be negative");
  if (hyperparameter_samples < 0) throw UserError("hyperparameter_samples must not be negative");
}

Surrogate::Surrogate(SurrogateOptions options) : options_(std::move(options)), kernel_(make_kernel(options_.kernel)) {
  options_.validate();
}

Points Surrogate::standardised(const Points& points) const {
  if (!options_.mean.predicts_the_function()) return points;
  options_.mean.validate(points);
  Points result = points;
  result.features.col(0) = (transform_->to_latent(points.features.col(0)).array() - feature_shift_) / scale_;
  return result;
}

Observations Surrogate::standardised(const Observations& observations) const {
  Observations result{standardised(observations.points), transform_->to_latent(observations.values), {}};
  result.values = (result.values.array() - shift_) / scale_;
  if (observations.variance.size() == 0) return result;
  result.variance = observations.values.binaryExpr(observations.variance, [this](double value, double variance) {
    return transform_->latent_variance(value, variance) / (scale_ * scale_);
  });
  return result;
}

Observations Surrogate::learn_scales(const Observations& observations) {
  observations.validate();
  options_.mean.validate(observations.points);
  transform_.emplace(options_.transform, observations.values);
  const VectorXd latent = transform_->to_latent(observations.values);
  shift_ = options_.standardise ? latent.mean() : 0.0;
  scale_ = options_.standardise ? spread_of(latent) : 1.0;
  if (options_.mean.predicts_the_function())
    feature_shift_ = options_.standardise ? transform_->to_latent(observations.points.features.col(0)).mean() : 0.0;
  return standardised(observations);
}

FitReport Surrogate::fit(const Observations& observations, Rng& rng, const std::optional<VectorXd>& start) {
  const Observations data = learn_scales(observations);
  const GpStructure structure{kernel_, options_.mean, options_.priors};
  return take(fit_hyperparameters(structure, data, options_.random_starts, rng, start), data, rng);
}

FitReport Surrogate::refit(const Observations& observations, Rng& rng, const VectorXd& start) {
  const Observations data = learn_scales(observations);
  return take(refit_hyperparameters({kernel_, options_.mean, options_.priors}, data, start), data, rng);
}

/// Makes the processes from the fitted hyperparameters.
FitReport Surrogate::take(FittedHyperparameters fitted, const Observations& data, Rng& rng) {
  theta_ = fitted.theta;
  std::vector<VectorXd> thetas{theta_};
  if (options_.hyperparameter_samples > 0)
    thetas = sample_hyperparameters({kernel_, options_.mean, options_.priors}, data, theta_,
                                    options_.hyperparameter_samples, rng);
  nearby_.clear();
  kept_.clear();
  processes_.assign(thetas.size(), GaussianProcess(kernel_, options_.mean));
  for (std::size_t i = 0; i < thetas.size(); ++i) processes_[i].condition(data, thetas[i]);
  fitted.report.jitter = processes_.front().jitter();
  return fitted.report;
}

void Surrogate::condition(const Observations& observations, const VectorXd& theta) {
  const Observations data = learn_scales(observations);
  theta_ = theta;
  nearby_.clear();
  kept_.clear();
  processes_.assign(1, GaussianProcess(kernel_, options_.mean));
  processes_.front().condition(data, theta);
}

void Surrogate::append(const Observations& more) {
  assert(!processes_.empty() && nearby_.empty());
  if (more.size() == 0) return;
  more.validate();
  const Observations data = standardised(more);
  for (GaussianProcess& process : processes_) process.append(data);
}

void Surrogate::append_nearby(const Observations& more, Eigen::Index neighbours) {
  assert(!processes_.empty());
  if (more.size() == 0) return;
  more.validate();
  const Observations data = standardised(more);
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (i < nearby_.size()) {
      nearby_[i].append(processes_[i], data);
    } else {
      nearby_.emplace_back(processes_[i], data, neighbours);
    }
    if (i < kept_.size()) kept_[i].update(processes_[i], nearby_[i]);
  }
}

void Surrogate::keep(const Points& points) {
  assert(has_nearby());
  const Points data = standardised(points);
  kept_.clear();
  for (std::size_t i = 0; i < nearby_.size(); ++i) kept_.emplace_back(processes_[i], nearby_[i], data);
}

Prediction Surrogate::kept() const {
  assert(!kept_.empty());
  std::vector<Prediction> each;
  for (const KeptPredictions& one : kept_) each.push_back(one.prediction());
  return mixture(each);
}

void Surrogate::believe(const Points& pending, const Eigen::VectorXd& success) {
  assert(!processes_.empty() && nearby_.empty());
  if (pending.size() == 0) return;
  const Points data = standardised(pending);
  for (GaussianProcess& process : processes_) process.believe(data, success);
}

void Surrogate::forget_believed() {
  for (GaussianProcess& process : processes_) process.forget_believed();
}

double Surrogate::noise_stddev() const { return scale_ * std::exp(theta_[theta_.size() - 1]); }

Prediction Surrogate::predict(const Points& points) const {
  if (nearby_.empty()) return predict_coarsely(points);
  const Points data = standardised(points);
  std::vector<Prediction> each;
  for (std::size_t i = 0; i < nearby_.size(); ++i) each.push_back(nearby_[i].predict(processes_[i], data));
  return mixture(each);
}

Prediction Surrogate::predict_coarsely(const Points& points) const {
  assert(!processes_.empty());
  const Points data = standardised(points);
  std::vector<Prediction> each;
  for (const GaussianProcess& process : processes_) each.push_back(process.predict(data));
  return mixture(each);
}

/// Mean E[m] and variance E[v] + E[(m - E m)^2].
Prediction Surrogate::mixture(const std::vector<Prediction>& each) const {
  const auto count = static_cast<double>(each.size());
  VectorXd mean = VectorXd::Zero(each.front().mean.size());
  for (const Prediction& one : each) mean += one.mean / count;
  VectorXd variance = VectorXd::Zero(mean.size());
  for (const Prediction& one : each) variance += (one.variance + (one.mean - mean).cwiseAbs2()) / count;
  return {(shift_ + scale_ * mean.array()).matrix(), scale_ * scale_ * variance};
}

PredictionGradient Surrogate::predict_with_gradient(const Points& point) const {
  assert(!processes_.empty());
  const Points data = standardised(point);
  const Index d = point.ordered.cols();
  const auto count = static_cast<double>(processes_.size());
  std::vector<PredictionGradient> each;
  PredictionGradient all{0.0, 0.0, VectorXd::Zero(d), VectorXd::Zero(d)};
  for (const GaussianProcess& process : processes_) {
    each.push_back(process.predict_with_gradient(data));
    all.mean += each.back().mean / count;
    all.mean_gradient += each.back().mean_gradient / count;
  }
  for (const PredictionGradient& one : each) {
    const double off = one.mean - all.mean;
    all.variance += (one.variance + off * off) / count;
    all.variance_gradient += (one.variance_gradient + 2.0 * off * (one.mean_gradient - all.mean_gradient)) / count;
  }
  const double square = scale_ * scale_;
  return {shift_ + scale_ * all.mean, square * all.variance, scale_ * all.mean_gradient,
          square * all.variance_gradient};
}

}  // namespace krigtune::surrogate
