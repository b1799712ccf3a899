#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "forecast/prior.h"
#include "krigtune/surrogate/points.h"
#include "krigtune/surrogate/surrogate.h"

namespace krigtune::search {

/// How probable each prior and its alternatives are, and what follows for the prior's values.
class BeliefWeights {
 public:
  /// The points' features: all priors, then all alternatives.
  explicit BeliefWeights(const std::vector<forecast::Belief>& beliefs);

  /// Weighs each prior against its alternatives by the log evidence of observations whose features are the priors'
  /// values, the other priors as they are.
  void learn(const surrogate::Observations& latent,
             const std::function<double(const surrogate::Observations&)>& log_evidence);
  /// The same points with one feature a prior: its values, averaged over what may be true in its place.
  surrogate::Points mixed(const surrogate::Points& points) const;

 private:
  // Of one prior: columns and probabilities, itself first.
  struct Hypotheses {
    std::vector<Eigen::Index> columns;
    Eigen::VectorXd before;
    Eigen::VectorXd now;
  };
  std::vector<Hypotheses> priors_;
};

/// Tells a fitted surrogate of trials that were ended early: at each point the noisy value is at most the bound (latent
/// units, larger better). Hyperparameters stay as they were learned from what was measured.
void condition_on_upper_bounds(surrogate::Surrogate& surrogate, const surrogate::Points& points,
                               const Eigen::VectorXd& bounds);

/// What is believed of the objective's latent values (ObjectiveScale), larger is better: the priors' sum and a Gaussian
/// process over what they leave. Points carry the priors' values as their features.
class ObjectiveModel {
 public:
  /// The points' features are theirs, in the order of Candidates::beliefs(). `logarithmic`: latent values are in nats.
  /// `run_columns`: of the matrices `runs` below, which say by a row a point how much of its value is the clock's
  /// (RunEffects::uncertainty). Predictions are of the latest run, which has zeros there. `has_reals`: the space has
  /// axes of real numbers.
  ObjectiveModel(const std::vector<forecast::Belief>& beliefs, bool logarithmic, Eigen::Index run_columns = 0,
                 bool has_reals = false);

  /// What the priors alone say, up to a constant; 0 where there is none.
  Eigen::VectorXd prior_values(const surrogate::Points& points) const;
  /// Learns from at least one value. `start`: theta() of an earlier fit.
  void fit(const surrogate::Observations& latent, Rng& rng, const std::optional<Eigen::VectorXd>& start,
           const Eigen::MatrixXd& runs = {});
  /// The same with hyperparameters that are known: theta() of an earlier fit.
  void condition(const surrogate::Observations& latent, const Eigen::VectorXd& theta, const Eigen::MatrixXd& runs = {});
  /// After fit or condition; so are the others. More values, which only predictions near them learn of; after the
  /// bounds, before pending points.
  void add_nearby(const surrogate::Observations& latent, const Eigen::MatrixXd& runs = {});
  /// Conditions on points at their posterior mean, as far as each is likely to have one; `success` empty: all are.
  void believe(const surrogate::Points& pending, const Eigen::VectorXd& success);
  /// Of trials that were ended early: latent values are at most the bounds.
  void bound_from_above(const surrogate::Points& points, const Eigen::VectorXd& bounds, const Eigen::MatrixXd& runs);
  /// Of the noise-free function.
  surrogate::Prediction predict(const surrogate::Points& points) const;
  /// The same without what was added nearby: wider, and cheaper.
  surrogate::Prediction predict_coarsely(const surrogate::Points& points) const;
  bool has_nearby() const { return surrogate_.has_nearby(); }
  /// Keeps predictions of candidates, which then cost little when more is believed; after add_nearby.
  void keep(const surrogate::Points& candidates) { surrogate_.keep(centred(candidates)); }
  surrogate::Prediction kept() const;
  const Eigen::VectorXd& theta() const { return surrogate_.theta(); }
  const surrogate::KernelSpec& kernel() const { return options_.kernel; }
  /// What predictions are made of: offset() plus what surrogate() says of the points centred().
  const surrogate::Surrogate& surrogate() const { return surrogate_; }
  surrogate::Points centred(const surrogate::Points& points) const;
  double offset() const { return offset_; }

 private:
  struct Residuals {
    surrogate::Observations observations;  ///< what the priors leave
    Eigen::RowVectorXd shifts;             ///< of the priors' values
    double offset = 0.0;                   ///< of the values
  };
  /// Weighs the priors and learns shifts and offset; what the priors leave.
  surrogate::Observations learn_residuals(const surrogate::Observations& latent, const Eigen::MatrixXd& runs);
  Residuals residuals_of(const surrogate::Observations& mixed) const;
  double log_evidence(const surrogate::Observations& mixed) const;
  Eigen::VectorXd noise_of_outliers(const surrogate::Observations& residuals) const;

  Eigen::Index run_columns_;
  surrogate::SurrogateOptions options_;
  BeliefWeights weights_;
  Eigen::VectorXd prior_centres_;    ///< of the coefficients of the priors, one each
  Eigen::RowVectorXd prior_shifts_;  ///< of the priors' values: their means over the observations
  double offset_ = 0.0;              ///< of latent values over the priors: their median
  surrogate::Surrogate surrogate_;
};

}  // namespace krigtune::search
