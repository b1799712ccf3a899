#pragma once
#include <vector>

#include "model/achieved_values.h"
#include "model/measured_configurations.h"
#include "model/objective_model.h"
#include "model/trial_success.h"

namespace krigtune {

/// What the trials of a history say of the objective and of failing. Private to this layer: the strategy bayes, the
/// recommendation and the predictions all ask this one.
class TrialModel {
 public:
  /// The arguments must outlive it.
  TrialModel(const Objective& objective, const Candidates& candidates, const History& history);

  bool has_values() const { return measured_.size() > 0; }
  /// A trial ended as it was not foreseen: failing is possible.
  bool has_failures() const { return success_.has_failures(); }
  const MemoryMargins& memory_margins() const { return success_.margins(); }
  const ObjectiveScale& scale() const { return scale_; }
  const MeasuredConfigurations& measured() const { return measured_; }

  /// Learns the objective's hyperparameters from the ok trials (at least one; bounds are then put in), starting where
  /// the last suggestion's fit ended, which its proposal holds.
  void fit(Rng& rng);
  /// Conditions on pending trials at their posterior mean. After fit.
  void believe_pending();
  Prediction predict(const Points& points) const { return values_.predict(points); }
  /// Latent values of the measured configurations as the smooth function has them, in the order of measured().
  Prediction predict_measured() const { return predict(measured_.latent.points); }
  /// What they achieve, in the same order: what the surrogate cannot explain is theirs where trials state how far they
  /// may be wrong, or are `exact`; else it is taken for noise.
  AchievedValues achieved(bool exact) const;
  /// Latent variance of a configuration about the smooth function, by the same rule.
  double own_variance(bool exact) const;
  /// For draws of the latent function: its process, points as that knows them, and the latent units of its own.
  const GaussianProcess& process() const { return values_.surrogate().processes().front(); }
  Points known_points(const Points& points) const { return values_.surrogate().standardised(centred(points)); }
  double latent_unit() const { return values_.surrogate().scale(); }
  /// What the priors alone say, up to a constant; 0 where there is none.
  Eigen::VectorXd prior_values(const Points& points) const { return values_.prior_values(points); }
  /// Points as achieved() takes them.
  Points centred(const Points& points) const { return values_.centred(points); }
  /// By what standard deviations are to be multiplied (calibration.h): predict() and achieved() do not.
  double widening() const { return widening_; }
  /// The largest posterior mean among the measured, before believing.
  double incumbent() const { return incumbent_; }
  std::vector<double> hyperparameters() const;

  /// Probability that a trial succeeds. `memory`: one a point.
  Eigen::VectorXd probability(const Points& points, const std::vector<std::optional<MemoryVerdict>>& memory) const {
    return success_.probability(points, memory);
  }

 private:
  std::optional<Eigen::VectorXd> last_fit() const;
  void learn_from_bounded();

  const Candidates& candidates_;
  const History& history_;
  ObjectiveScale scale_;
  RunEffects effects_;
  MeasuredConfigurations measured_;
  double incumbent_ = 0.0;
  double widening_;
  ObjectiveModel values_;
  TrialSuccess success_;
};

}  // namespace krigtune
