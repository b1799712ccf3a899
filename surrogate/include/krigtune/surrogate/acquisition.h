#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <vector>

#include "krigtune/surrogate/model.h"

namespace krigtune::surrogate {

/// log(phi(u) + u Phi(u)) without cancellation or underflow down to u = -1e100 (Ament et al. 2023, "Unexpected
/// improvements to expected improvement").
double log_h(double u);
/// d log_h / du = Phi(u) / h(u).
double log_h_derivative(double u);
double log_normal_cdf(double z);

/// An acquisition's value at one Gaussian and its derivatives by the Gaussian's moments.
struct AcquisitionValue {
  double value = 0.0;
  double by_mean = 0.0;
  double by_variance = 0.0;
};

/// What a Gaussian posterior at a point is worth, larger is better; those that multiply (improvement, probability, one
/// over cost) as logarithms, so that a product of several is a sum. Knows nothing of the model behind the posterior.
class Acquisition {
 public:
  virtual ~Acquisition() = default;
  virtual AcquisitionValue at(double mean, double variance) const = 0;
  /// value at every prediction.
  virtual Eigen::VectorXd values(const Prediction& prediction) const = 0;
};

/// log EI over `best`, for maximisation; finite where the variance is 0. For noisy values `best` is the largest
/// posterior mean at the measured points (incumbent_mean), not the luckiest value; variances are of the noise-free
/// function.
std::unique_ptr<Acquisition> make_log_expected_improvement(double best);
double incumbent_mean(const Model& model, const Points& measured);
/// mean + sqrt(beta) stddev (Srinivas et al. 2010): an optimist's search. Minimisation: of the negated function. A
/// plain value, no logarithm: not for sums with the others.
std::unique_ptr<Acquisition> make_upper_confidence_bound(double beta);
/// mean - sqrt(beta) stddev, larger is better: a point to recommend, good for sure. Plain likewise.
std::unique_ptr<Acquisition> make_lower_confidence_bound(double beta);
/// log P(f >= bound), log P(f <= bound): feasibility by a measured constraint.
std::unique_ptr<Acquisition> make_log_probability_above(double bound);
std::unique_ptr<Acquisition> make_log_probability_below(double bound);
/// -log E[exp f] = -(mean + variance / 2): divides by a cost whose logarithm is modelled.
std::unique_ptr<Acquisition> make_per_unit_cost();

/// One model's word on a point.
struct ScoreTerm {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Acquisition> acquisition;
  double weight = 1.0;
};

/// Anything to be maximised over points.
class ScoreFunction {
 public:
  virtual ~ScoreFunction() = default;
  virtual Eigen::VectorXd values(const Points& points) const = 0;
  /// Value at one point; writes the derivatives by its ordered columns.
  virtual double value_with_gradient(const Points& point, Eigen::VectorXd& gradient) const = 0;
};

/// Sum of weighted terms: expected improvement times probabilities of feasibility per unit cost, as logarithms; and of
/// `others`, such as expected improvement over fantasies.
class Score final : public ScoreFunction {
 public:
  explicit Score(std::vector<ScoreTerm> terms, std::vector<std::shared_ptr<const ScoreFunction>> others = {});
  Eigen::VectorXd values(const Points& points) const override;
  double value_with_gradient(const Points& point, Eigen::VectorXd& gradient) const override;

 private:
  std::vector<ScoreTerm> terms_;
  std::vector<std::shared_ptr<const ScoreFunction>> others_;
};

/// A measured quantity that must not be above its bound.
struct Constraint {
  std::shared_ptr<const Model> model;
  double bound = 0.0;
};

/// The terms of log EI over the best feasible value, plus the log probability that every constraint holds (Gardner et
/// al. 2014, "Bayesian optimization with inequality constraints"), less the log cost where a model of it is given.
/// While nothing feasible is known the improvement is left out: something feasible is looked for first.
std::vector<ScoreTerm> constrained_improvement(std::shared_ptr<const Model> objective,
                                               std::optional<double> best_feasible,
                                               const std::vector<Constraint>& constraints,
                                               std::shared_ptr<const Model> log_cost = nullptr);

/// log EI over `best` at every prediction: the one that is asked for most.
Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best);

}  // namespace krigtune::surrogate
