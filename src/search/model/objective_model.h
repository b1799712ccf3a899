#pragma once
#include <optional>

#include "forecast/prior.h"
#include "krigtune/surrogate/points.h"
#include "krigtune/surrogate/surrogate.h"

namespace krigtune::search {

/// The priors of the residuals' hyperparameters, in nats.
surrogate::HyperparameterPriors residual_priors();

/// Tells a fitted surrogate about trials that were ended early: at each point the noisy value is at most the bound
/// (latent units, larger is better). The hyperparameters learned from measured values do not change.
void condition_on_upper_bounds(surrogate::Surrogate& surrogate, const surrogate::Points& points,
                               const Eigen::VectorXd& bounds);

/// The model of the objective's latent values (ObjectiveScale; larger is better): the sum of the priors and a Gaussian
/// process for the residuals. The features of points are the priors' values.
class ObjectiveModel {
 public:
  /// The features of points are the priors' values in their order, then `doubts` columns: how far the first prior may
  /// be wrong, as JobBelief::log_values. `logarithmic`: latent values are in nats.
  /// `run_columns`: columns of the matrices `runs` below, which have one row per point: how its value depends on the
  /// effects of runs (RunEffects::uncertainty). Predictions are for the latest run, whose row is zero. `has_reals`: the
  /// space has continuous axes.
  ObjectiveModel(const forecast::Priors& priors, bool logarithmic, Eigen::Index run_columns = 0, bool has_reals = false,
                 Eigen::Index doubts = 0);

  /// Returns the values of the priors alone, up to a constant; 0 if there are none.
  Eigen::VectorXd prior_values(const surrogate::Points& points) const;
  /// Learns from at least one value. `start`: theta() of an earlier fit.
  void fit(const surrogate::Observations& latent, Rng& rng, const std::optional<Eigen::VectorXd>& start,
           const Eigen::MatrixXd& runs = {});
  /// Does the same with known hyperparameters: theta() of an earlier fit.
  void condition(const surrogate::Observations& latent, const Eigen::VectorXd& theta, const Eigen::MatrixXd& runs = {});
  /// The functions from here on require fit or condition. add_nearby adds values that only affect predictions near
  /// them; call it after the bounds and before pending points.
  void add_nearby(const surrogate::Observations& latent, const Eigen::MatrixXd& runs = {});
  /// Conditions on points at their posterior mean, weighted by their probability of success; `success` empty: all
  /// succeed.
  void believe(const surrogate::Points& pending, const Eigen::VectorXd& success);
  /// Conditions on trials that were ended early: their latent values are at most the bounds.
  void bound_from_above(const surrogate::Points& points, const Eigen::VectorXd& bounds, const Eigen::MatrixXd& runs);
  /// Predicts the noise-free function.
  surrogate::Prediction predict(const surrogate::Points& points) const;
  /// Does the same without the nearby observations: wider and cheaper.
  surrogate::Prediction predict_coarsely(const surrogate::Points& points) const;
  bool has_nearby() const { return surrogate_.has_nearby(); }
  /// Keeps predictions of the candidates, so that they are cheap to update when more is believed. Call after
  /// add_nearby.
  void keep(const surrogate::Points& candidates) { surrogate_.keep(centred(candidates)); }
  surrogate::Prediction kept() const;
  const Eigen::VectorXd& theta() const { return surrogate_.theta(); }
  const surrogate::KernelSpec& kernel() const { return options_.kernel; }
  /// Predictions are offset() plus what surrogate() predicts for the centred() points.
  const surrogate::Surrogate& surrogate() const { return surrogate_; }
  surrogate::Points centred(const surrogate::Points& points) const;
  double offset() const { return offset_; }

 private:
  struct Residuals {
    surrogate::Observations observations;  ///< residuals of the priors
    Eigen::RowVectorXd shifts;             ///< subtracted from the priors' values
    double offset = 0.0;                   ///< subtracted from the values
  };
  /// Learns shifts and offset, and returns the residuals.
  surrogate::Observations learn_residuals(const surrogate::Observations& latent, const Eigen::MatrixXd& runs);
  Residuals residuals_of(const surrogate::Observations& latent) const;
  Eigen::VectorXd doubt(const surrogate::Points& centred) const;
  Eigen::VectorXd noise_of_outliers(const surrogate::Observations& residuals) const;

  Eigen::Index run_columns_;
  Eigen::Index doubts_;
  surrogate::SurrogateOptions options_;
  Eigen::VectorXd prior_centres_;    ///< of the priors' coefficients, one each
  Eigen::RowVectorXd prior_shifts_;  ///< means of the priors' values over the observations
  double offset_ = 0.0;              ///< median of the latent values minus the priors
  surrogate::Surrogate surrogate_;
};

}  // namespace krigtune::search
