#pragma once
#include <optional>
#include <vector>

#include "model/trial_model.h"

namespace krigtune {

/// E[max_i (means_i + slopes_i Z)] - max_i means_i, Z standard normal: what choosing the best after one more
/// measurement gains over choosing it now.
double expected_gain_of_choice(const Eigen::VectorXd& means, const Eigen::VectorXd& slopes);

/// What one more measurement gains for the recommendation, of something measured before or of something new: the
/// knowledge gradient, in latent units (a gain of 0.01 is 1 % where values are logarithms). Private to this layer.
class RepeatGain {
 public:
  /// `model`: fitted, pending trials believed. The arguments must outlive it.
  RepeatGain(const Session& session, const Candidates& candidates, const History& history, const TrialModel& model);

  struct Repeat {
    Eigen::Index row = 0;   ///< of the measured configurations
    std::size_t trial = 0;  ///< index into the history: the first ok trial of its configuration
    double gain = 0.0;
    double mean = 0.0;  ///< of what it achieves, latent
  };
  /// The repeat that gains the most. Empty: nothing may be measured again with another result.
  std::optional<Repeat> best() const;
  /// Of a configuration that was not measured yet; one point.
  double of_new(const Points& candidate) const;

 private:
  const TrialModel& model_;
  bool exact_;
  AchievedValues achieved_;
  std::vector<bool> repeatable_;  ///< one a measured configuration
};

}  // namespace krigtune
