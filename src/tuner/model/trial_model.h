#pragma once
#include <vector>

#include "model/objective_model.h"
#include "model/objective_scale.h"
#include "model/trial_noise.h"
#include "model/trial_success.h"

namespace krigtune {

/// What the trials of a history say of the objective and of failing. Private to this layer: the strategy bayes, the
/// recommendation and the predictions all ask this one.
class TrialModel {
 public:
  /// The arguments must outlive it.
  TrialModel(const Objective& objective, const Candidates& candidates, const History& history);

  bool has_values() const { return !measured_.empty(); }
  /// A trial ended as it was not foreseen: failing is possible.
  bool has_failures() const { return success_.has_failures(); }
  const ObjectiveScale& scale() const { return scale_; }
  /// Indices into the history of the ok trials.
  const std::vector<std::size_t>& measured() const { return measured_; }

  /// Learns the objective's hyperparameters from the ok trials (at least one), starting where the last suggestion's fit
  /// ended, which its proposal holds.
  void fit(Rng& rng);
  /// Conditions on pending trials at their posterior mean. After fit.
  void believe_pending();
  Prediction predict(const Points& points) const { return values_.predict(points); }
  /// Latent values of the ok trials' configurations without noise, in the order of measured().
  Prediction predict_measured() const { return predict(measured_points_); }
  /// What the priors alone say, up to a constant; 0 where there is none.
  Eigen::VectorXd prior_values(const Points& points) const { return values_.prior_values(points); }
  /// The largest posterior mean among the ok trials, before believing.
  double incumbent() const { return incumbent_; }
  std::vector<double> hyperparameters() const;

  /// Probability that a trial succeeds. `memory`: one a point.
  Eigen::VectorXd probability(const Points& points, const std::vector<std::optional<MemoryVerdict>>& memory) const {
    return success_.probability(points, memory);
  }

 private:
  std::optional<Eigen::VectorXd> last_fit() const;

  const Objective& objective_;
  const Candidates& candidates_;
  const History& history_;
  ObjectiveScale scale_;
  TrialNoise noise_;
  std::vector<std::size_t> measured_;
  Points measured_points_;
  double incumbent_ = 0.0;
  ObjectiveModel values_;
  TrialSuccess success_;
};

}  // namespace krigtune
