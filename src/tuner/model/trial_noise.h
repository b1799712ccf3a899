#pragma once
#include "krigtune/tuner/history.h"

namespace krigtune {

/// What may be wrong with a trial's value, see trial_noise.cpp.
class TrialNoise {
 public:
  TrialNoise(const Objective& objective, const Candidates& candidates, const History& history);

  /// Standard error of a measured value as an estimate of what its configuration achieves: within its run and between
  /// runs. A value that states no spread (value_sem = 0) is left without: nothing is known of how it came about.
  double total_sem(double value, double value_sem) const;
  /// Relative standard deviation from run to run, beyond what a run's own standard error explains.
  double between_fraction() const { return between_fraction_; }

  /// Without repeated trials.
  static constexpr double kDefaultFraction = 0.03;

 private:
  double between_fraction_;
};

}  // namespace krigtune
