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
  return take(fit_hyperparameters(structure, data, options_.random_starts, rng, start), data);
}

FitReport Surrogate::refit(const Observations& observations, const VectorXd& start) {
  const Observations data = learn_scales(observations);
  return take(refit_hyperparameters({kernel_, options_.mean, options_.priors}, data, start), data);
}

void Surrogate::condition(const Observations& observations, const VectorXd& theta) {
  take({theta, {}}, learn_scales(observations));
}

/// Makes the process with these hyperparameters.
FitReport Surrogate::take(FittedHyperparameters fitted, const Observations& data) {
  theta_ = fitted.theta;
  nearby_.reset();
  kept_.reset();
  processes_.assign(1, GaussianProcess(kernel_, options_.mean));
  processes_.front().condition(data, theta_);
  fitted.report.jitter = processes_.front().jitter();
  return fitted.report;
}

void Surrogate::append(const Observations& more) {
  assert(!processes_.empty() && !nearby_);
  if (more.size() == 0) return;
  more.validate();
  processes_.front().append(standardised(more));
}

void Surrogate::append_nearby(const Observations& more, Eigen::Index neighbours) {
  assert(!processes_.empty());
  if (more.size() == 0) return;
  more.validate();
  const Observations data = standardised(more);
  if (nearby_) {
    nearby_->append(processes_.front(), data);
  } else {
    nearby_.emplace(processes_.front(), data, neighbours);
  }
  if (kept_) kept_->update(processes_.front(), *nearby_);
}

void Surrogate::keep(const Points& points) {
  assert(has_nearby());
  kept_.emplace(processes_.front(), *nearby_, standardised(points));
}

Prediction Surrogate::kept() const {
  assert(kept_);
  return in_latent_units(kept_->prediction());
}

void Surrogate::believe(const Points& pending, const Eigen::VectorXd& success) {
  assert(!processes_.empty() && !nearby_);
  if (pending.size() > 0) processes_.front().believe(standardised(pending), success);
}

void Surrogate::forget_believed() {
  for (GaussianProcess& process : processes_) process.forget_believed();
}

double Surrogate::noise_stddev() const { return scale_ * std::exp(theta_[theta_.size() - 1]); }

Prediction Surrogate::predict(const Points& points) const {
  return nearby_ ? in_latent_units(nearby_->predict(processes_.front(), standardised(points)))
                 : predict_coarsely(points);
}

Prediction Surrogate::predict_coarsely(const Points& points) const {
  assert(!processes_.empty());
  return in_latent_units(processes_.front().predict(standardised(points)));
}

Prediction Surrogate::in_latent_units(const Prediction& standardised) const {
  return {(shift_ + scale_ * standardised.mean.array()).matrix(), scale_ * scale_ * standardised.variance};
}

PredictionGradient Surrogate::predict_with_gradient(const Points& point) const {
  assert(!processes_.empty());
  const PredictionGradient one = processes_.front().predict_with_gradient(standardised(point));
  const double square = scale_ * scale_;
  return {shift_ + scale_ * one.mean, square * one.variance, scale_ * one.mean_gradient,
          square * one.variance_gradient};
}

}  // namespace krigtune::surrogate
