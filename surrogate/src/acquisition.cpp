// What a Gaussian is worth, with m its mean and s^2 its variance:
//
//   log EI        = log(s h(u)),  u = (m - best) / s      d/dm = Phi / (h s)     d/ds = phi / (h s)
//   log P(f >= b) = log Phi(z),   z = (m - b) / s         d/dm = phi / (Phi s)   d/ds = -z phi / (Phi s)
//
// d / d s^2 = (d / ds) / (2 s). Mockus 1975 (EI); Ament et al. 2023 (its logarithm); h and Phi: normal_tails.h.
#include "krigtune/surrogate/acquisition.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "vector_unit/normal_tails.h"

namespace krigtune::surrogate {
namespace {

using Eigen::VectorXd;

// The logarithm of a stddev of 0 does not exist. This variance is negligible in any unit of the values, and u^2 stays
// finite.
constexpr double kMinVariance = 1e-200;

double stddev_of(double variance) { return std::sqrt(std::max(variance, kMinVariance)); }

Eigen::ArrayXd stddev_of(const VectorXd& variance) { return variance.array().max(kMinVariance).sqrt(); }

/// Converts d / ds to d / d s^2; 0 if the variance is held at its minimum.
double by_variance(double by_stddev, double variance) {
  return variance > kMinVariance ? 0.5 * by_stddev / std::sqrt(variance) : 0.0;
}

class LogExpectedImprovement final : public Acquisition {
 public:
  explicit LogExpectedImprovement(double best) : best_(best) { assert(std::isfinite(best)); }
  AcquisitionValue at(double mean, double variance) const override {
    const double stddev = stddev_of(variance);
    const double u = (mean - best_) / stddev;
    return {log_h(u) + std::log(stddev), log_h_derivative(u) / stddev,
            by_variance(normal_density_over_h(u) / stddev, variance)};
  }
  VectorXd values(const Prediction& prediction) const override {
    const Eigen::ArrayXd stddev = stddev_of(prediction.variance);
    return log_h((prediction.mean.array() - best_) / stddev).array() + stddev.log();
  }

 private:
  double best_;
};

/// log P(sign (f - bound) >= 0).
class LogProbability final : public Acquisition {
 public:
  LogProbability(double sign, double bound) : sign_(sign), bound_(bound) { assert(std::isfinite(bound)); }
  AcquisitionValue at(double mean, double variance) const override {
    const double stddev = stddev_of(variance);
    const double z = sign_ * (mean - bound_) / stddev;
    const double slope = log_normal_cdf_derivative(z) / stddev;
    return {log_normal_cdf(z), sign_ * slope, by_variance(-z * slope, variance)};
  }
  VectorXd values(const Prediction& prediction) const override {
    return log_normal_cdf(sign_ * (prediction.mean.array() - bound_) / stddev_of(prediction.variance));
  }

 private:
  double sign_;
  double bound_;
};

}  // namespace

std::unique_ptr<Acquisition> make_log_expected_improvement(double best) {
  return std::make_unique<LogExpectedImprovement>(best);
}

std::unique_ptr<Acquisition> make_log_probability_above(double bound) {
  return std::make_unique<LogProbability>(1.0, bound);
}

std::unique_ptr<Acquisition> make_log_probability_below(double bound) {
  return std::make_unique<LogProbability>(-1.0, bound);
}

double incumbent_mean(const Model& model, const Points& measured) { return model.predict(measured).mean.maxCoeff(); }

VectorXd log_expected_improvement(const Prediction& prediction, double best) {
  return LogExpectedImprovement(best).values(prediction);
}

// Score(x) = sum_k weight_k a_k(mean_k(x), variance_k(x)); its gradient by the chain rule.

using Eigen::VectorXd;

Score::Score(std::vector<ScoreTerm> terms) : terms_(std::move(terms)) {
  for ([[maybe_unused]] const ScoreTerm& term : terms_)
    assert(term.model && term.acquisition && std::isfinite(term.weight));
}

VectorXd Score::values(const Points& points) const {
  VectorXd sum = VectorXd::Zero(points.size());
  Prediction prediction;
  const Model* predicted = nullptr;
  for (const ScoreTerm& term : terms_) {
    // Usually the terms of one model follow each other, so its prediction is reused.
    if (term.model.get() != predicted) prediction = term.model->predict(points);
    predicted = term.model.get();
    sum += term.weight * term.acquisition->values(prediction);
  }
  return sum;
}

double Score::value_with_gradient(const Points& point, VectorXd& gradient) const {
  double sum = 0.0;
  gradient = VectorXd::Zero(point.ordered.cols());
  for (const ScoreTerm& term : terms_) {
    const PredictionGradient prediction = term.model->predict_with_gradient(point);
    const AcquisitionValue value = term.acquisition->at(prediction.mean, prediction.variance);
    sum += term.weight * value.value;
    gradient += term.weight * value.by_mean * prediction.mean_gradient;
    gradient += term.weight * value.by_variance * prediction.variance_gradient;
  }
  return sum;
}

std::vector<ScoreTerm> constrained_improvement(std::shared_ptr<const Model> objective,
                                               std::optional<double> best_feasible,
                                               const std::vector<Constraint>& constraints) {
  std::vector<ScoreTerm> terms;
  if (best_feasible) terms.push_back({std::move(objective), make_log_expected_improvement(*best_feasible)});
  for (const Constraint& constraint : constraints)
    terms.push_back({constraint.model, make_log_probability_below(constraint.bound)});
  return terms;
}

}  // namespace krigtune::surrogate
