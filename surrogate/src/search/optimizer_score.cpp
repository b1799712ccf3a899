// What a point is worth as the next one:
//
//   a(x) = log EI(x) + sum_k log P(c_k(x) <= 0) + log P(success at x)
//
// expected improvement over the best posterior mean at a feasible point, times the probability that every measured
// constraint holds (Gardner et al. 2014, "Bayesian optimization with inequality constraints"), times that of not
// failing. While nothing feasible is known the improvement is left out. Pending points are believed at their posterior
// means (Ginsbourger, Le Riche & Carraro 2010), which count as measured: as incumbents too.
#include "search/optimizer_score.h"

#include <cmath>
#include <utility>

#include "krigtune/surrogate/success_model.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Plain EI times P goes on failing for as long as the values promise a rise beyond the edge of a failing region: what
// an improvement may be worth spans many decades, and P does not. So P counts as it is where it is at least two thirds
// of the largest at a point told, and below that its shortfall counts a hundred times more: nearly forbidden, but with
// a gradient that leads back.
constexpr double kLeastPart = 2.0 / 3.0;
constexpr double kCaution = 100.0;

/// log P(success) above `floor`; below, it falls 1 + kCaution times as fast.
class CautiousSuccess final : public Acquisition {
 public:
  explicit CautiousSuccess(double floor) : log_probability_(make_log_success_probability()), floor_(floor) {}

  AcquisitionValue at(double mean, double variance) const override {
    AcquisitionValue result = log_probability_->at(mean, variance);
    if (result.value >= floor_) return result;
    result.value += kCaution * (result.value - floor_);
    result.by_mean *= 1.0 + kCaution;
    result.by_variance *= 1.0 + kCaution;
    return result;
  }
  VectorXd values(const Prediction& prediction) const override {
    const VectorXd log_probability = log_probability_->values(prediction);
    return log_probability + kCaution * (log_probability.array() - floor_).cwiseMin(0.0).matrix();
  }

 private:
  std::unique_ptr<Acquisition> log_probability_;
  double floor_;
};

ScoreTerm success_term(const History& history) {
  Points points = history.pending.slice(0, 0);
  std::vector<bool> succeeded;
  for (const Evaluation& evaluation : history.told) {
    points.append(evaluation.point);
    succeeded.push_back(evaluation.value.has_value());
  }
  auto model = std::make_shared<SuccessModel>(make_kernel(KernelKind::kMatern52));
  model->fit(points, VectorXd::Zero(points.size()), succeeded);
  const double safest = make_log_success_probability()->values(model->predict(points)).maxCoeff();
  return {model, std::make_shared<CautiousSuccess>(safest + std::log(kLeastPart))};
}

std::shared_ptr<const Surrogate> fitted(const Observations& observations, SurrogateOptions options,
                                        const Points& pending, Rng& rng) {
  auto model = std::make_shared<Surrogate>(std::move(options));
  model->fit(observations, rng);
  model->believe(pending);
  return model;
}

/// Pending points at which every constraint's mean says that it holds.
Points believed_feasible(const Points& pending, const std::vector<Constraint>& constraints) {
  Eigen::Array<bool, Eigen::Dynamic, 1> holds = Eigen::Array<bool, Eigen::Dynamic, 1>::Constant(pending.size(), true);
  for (const Constraint& constraint : constraints)
    holds = holds && constraint.model->predict(pending).mean.array() <= constraint.bound;
  Points feasible = pending.slice(0, 0);
  for (Index i = 0; i < pending.size(); ++i)
    if (holds[i]) feasible.append(pending.slice(i, 1));
  return feasible;
}

}  // namespace

Score score_of(const History& history, const OptimizerOptions& options, Rng& rng) {
  SurrogateOptions of_values = options.surrogate;
  SurrogateOptions of_constraints = options.surrogate;
  of_constraints.transform = OutputTransform::Kind::kIdentity;
  of_constraints.mean = Mean::constant();  // features, if there are any, speak of the values
  std::vector<Constraint> constraints;
  for (Index k = 0; k < history.constraints(); ++k)
    constraints.push_back({fitted(history.constraint(k), of_constraints, history.pending, rng)});
  // Beside constraints the best feasible value may lie anywhere among the values, in the half that would be warped too.
  if (!constraints.empty() && of_values.transform == OutputTransform::Kind::kRankRobust)
    of_values.transform = OutputTransform::Kind::kIdentity;

  const auto imputed = options.failures == OptimizerOptions::Failures::kImpute ? history.worst() : std::nullopt;
  std::shared_ptr<const Surrogate> model;
  std::optional<double> incumbent;
  if (history.best()) {
    model = fitted(history.values(imputed), of_values, history.pending, rng);
    Points feasible = history.feasible_points();
    feasible.append(believed_feasible(history.pending, constraints));
    incumbent = incumbent_mean(*model, feasible);
  }
  std::vector<ScoreTerm> terms = constrained_improvement(model, incumbent, constraints);
  if (history.has_failures() && !imputed) terms.push_back(success_term(history));
  return Score(std::move(terms));
}

}  // namespace krigtune
