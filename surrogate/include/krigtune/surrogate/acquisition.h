#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <vector>

#include "krigtune/surrogate/model.h"

namespace krigtune::surrogate {

/// Returns log h(u) = log(phi(u) + u Phi(u)) without cancellation or underflow down to u = -1e100 (Ament et al. 2023,
/// "Unexpected improvements to expected improvement").
double log_h(double u);
/// Returns d log_h / du = Phi(u) / h(u).
double log_h_derivative(double u);
double log_normal_cdf(double z);

/// The value of an acquisition function at one Gaussian, and its derivatives with respect to mean and variance.
struct AcquisitionValue {
  double value = 0.0;
  double by_mean = 0.0;
  double by_variance = 0.0;
};

/// Rates the Gaussian posterior at a point; larger is better. Acquisitions that are meant to be multiplied
/// (improvement, probability) return logarithms, so that a product is a sum. An acquisition knows
/// nothing about the model behind the posterior.
class Acquisition {
 public:
  virtual ~Acquisition() = default;
  virtual AcquisitionValue at(double mean, double variance) const = 0;
  /// Returns the value at every prediction.
  virtual Eigen::VectorXd values(const Prediction& prediction) const = 0;
};

/// Log of the expected improvement over `best`, for maximisation; finite even if the variance is 0. For noisy values
/// pass the largest posterior mean at the measured points (incumbent_mean) as `best`, not the luckiest value. Variances
/// are those of the noise-free function.
std::unique_ptr<Acquisition> make_log_expected_improvement(double best);
double incumbent_mean(const Model& model, const Points& measured);
/// log P(f >= bound) and log P(f <= bound): the probability that a measured constraint is satisfied.
std::unique_ptr<Acquisition> make_log_probability_above(double bound);
std::unique_ptr<Acquisition> make_log_probability_below(double bound);
/// One model and the acquisition that rates its posterior.
struct ScoreTerm {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Acquisition> acquisition;
  double weight = 1.0;
};

/// A function of points that can be maximised.
class ScoreFunction {
 public:
  virtual ~ScoreFunction() = default;
  virtual Eigen::VectorXd values(const Points& points) const = 0;
  /// Returns the value at one point and writes the derivatives with respect to its ordered columns.
  virtual double value_with_gradient(const Points& point, Eigen::VectorXd& gradient) const = 0;
};

/// The sum of weighted terms. With logarithms this is expected improvement times the probabilities of feasibility.
class Score final : public ScoreFunction {
 public:
  explicit Score(std::vector<ScoreTerm> terms);
  Eigen::VectorXd values(const Points& points) const override;
  double value_with_gradient(const Points& point, Eigen::VectorXd& gradient) const override;

 private:
  std::vector<ScoreTerm> terms_;
};

/// A measured quantity that must not exceed its bound.
struct Constraint {
  std::shared_ptr<const Model> model;
  double bound = 0.0;
};

/// Returns the terms of log EI over the best feasible value plus the log probability that every constraint is satisfied
/// (Gardner et al. 2014, "Bayesian optimization with inequality constraints"). While no feasible value is known, the
/// improvement is left out, so that the search first looks for a feasible point.
std::vector<ScoreTerm> constrained_improvement(std::shared_ptr<const Model> objective,
                                               std::optional<double> best_feasible,
                                               const std::vector<Constraint>& constraints);

/// Returns log EI over `best` at every prediction: a shortcut for the most common acquisition.
Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best);

}  // namespace krigtune::surrogate
