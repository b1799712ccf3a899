// Score(x) = sum_k weight_k a_k(mean_k(x), variance_k(x)); its gradient by the chain rule.
#include <cassert>
#include <cmath>
#include <utility>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune {

using Eigen::VectorXd;

Score::Score(std::vector<ScoreTerm> terms, std::vector<std::shared_ptr<const ScoreFunction>> others)
    : terms_(std::move(terms)), others_(std::move(others)) {
  for ([[maybe_unused]] const ScoreTerm& term : terms_)
    assert(term.model && term.acquisition && std::isfinite(term.weight));
}

VectorXd Score::values(const Points& points) const {
  VectorXd sum = VectorXd::Zero(points.size());
  Prediction prediction;
  const Model* predicted = nullptr;
  for (const ScoreTerm& term : terms_) {
    // Terms of one model come one after the other, as a rule.
    if (term.model.get() != predicted) prediction = term.model->predict(points);
    predicted = term.model.get();
    sum += term.weight * term.acquisition->values(prediction);
  }
  for (const auto& other : others_) sum += other->values(points);
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
  for (const auto& other : others_) {
    VectorXd by_other;
    sum += other->value_with_gradient(point, by_other);
    gradient += by_other;
  }
  return sum;
}

std::vector<ScoreTerm> constrained_improvement(std::shared_ptr<const Model> objective,
                                               std::optional<double> best_feasible,
                                               const std::vector<Constraint>& constraints,
                                               std::shared_ptr<const Model> log_cost) {
  std::vector<ScoreTerm> terms;
  if (best_feasible) terms.push_back({std::move(objective), make_log_expected_improvement(*best_feasible)});
  for (const Constraint& constraint : constraints)
    terms.push_back({constraint.model, make_log_probability_below(constraint.bound)});
  if (log_cost) terms.push_back({std::move(log_cost), make_per_unit_cost()});
  return terms;
}

}  // namespace krigtune
