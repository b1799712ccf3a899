#pragma once
#include <vector>

#include "krigtune/surrogate/success_model.h"
#include "krigtune/surrogate/surrogate.h"
#include "model/objective_scale.h"
#include "model/trial_noise.h"

namespace krigtune {

/// What the trials of a history say of the objective and of failing. Private to this layer: the strategy bayes, the
/// recommendation and the predictions all ask this one.
class TrialModel {
 public:
  /// The arguments must outlive it.
  TrialModel(const Objective& objective, const Candidates& candidates, const History& history);

  bool has_values() const { return !measured_.empty(); }
  /// A trial ended as it was not foreseen: failing is possible.
  bool has_failures() const { return has_failures_; }
  const ObjectiveScale& scale() const { return scale_; }
  /// Indices into the history of the ok trials.
  const std::vector<std::size_t>& measured() const { return measured_; }

  /// Learns the objective's hyperparameters from the ok trials (at least one), starting where the last suggestion's fit
  /// ended, which its proposal holds.
  void fit(Rng& rng);
  /// Conditions on pending trials at their posterior mean. After fit.
  void believe_pending();
  Prediction predict(const Points& points) const;
  /// Latent values of the ok trials' configurations without noise, in the order of measured().
  Prediction predict_measured() const { return predict(measured_points_); }
  /// For draws of the latent function: its process, points as that knows them, and the latent units of its own.
  const GaussianProcess& process() const { return surrogate_.processes().front(); }
  Points known_points(const Points& points) const { return surrogate_.standardised(centred(points)); }
  double latent_unit() const { return surrogate_.scale(); }
  /// What the priors alone say, up to a constant; 0 where there is none.
  Eigen::VectorXd prior_values(const Points& points) const;
  /// The largest posterior mean among the ok trials, before believing.
  double incumbent() const { return incumbent_; }
  std::vector<double> hyperparameters() const;

  /// Probability that a trial succeeds. `memory`: one a point.
  Eigen::VectorXd probability(const Points& points, const std::vector<std::optional<MemoryVerdict>>& memory) const;

 private:
  void read_outcomes();
  void fit_success();
  double prior_mean(const std::optional<MemoryVerdict>& memory) const;
  std::optional<Eigen::VectorXd> last_fit() const;
  Points centred(const Points& points) const;

  const Objective& objective_;
  const Candidates& candidates_;
  const History& history_;
  ObjectiveScale scale_;
  TrialNoise noise_;
  std::vector<std::size_t> measured_;
  Points measured_points_;
  bool has_failures_ = false;
  std::optional<double> memory_wall_;  ///< bytes; see trial_model.cpp
  bool wall_is_sharp_ = false;         ///< nothing larger has run
  double incumbent_ = 0.0;
  Eigen::VectorXd prior_centres_;    ///< of the coefficients of the priors, one each
  Eigen::RowVectorXd prior_shifts_;  ///< of the priors' values: their means over the ok trials
  double offset_ = 0.0;              ///< of latent values over the priors: their median
  Surrogate surrogate_;
  SuccessModel success_;
};

}  // namespace krigtune
