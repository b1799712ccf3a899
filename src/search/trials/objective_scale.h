#pragma once
#include "search/trials/history.h"

namespace krigtune::search {

/// The objective as the surrogate sees it: larger is better, and relative differences where all values are positive.
class ObjectiveScale {
 public:
  /// Logarithms, unless a measured value is not positive.
  ObjectiveScale(const session::Objective& objective, const History& history);

  double to_latent(double value) const;
  double from_latent(double latent) const;
  /// Variance of a latent whose value has that standard error (first order).
  double latent_variance(double value, double value_sem) const;
  /// log E[improvement over from_latent(best)], in the objective's units, for a latent Normal(mean, stddev^2).
  double log_expected_improvement(double mean, double stddev, double best) const;
  /// Half the 68 % interval of the value, in the objective's units, for a latent Normal(mean, stddev^2).
  double half_width(double mean, double stddev) const;
  /// The latent's stddev behind that: half_width(to_latent(value), x) = half_width.
  double latent_stddev(double value, double half_width) const;
  bool logarithmic() const { return logarithmic_; }
  bool maximize() const { return maximize_; }

 private:
  bool maximize_;
  bool logarithmic_;
};

/// What may be wrong with a trial's value, see objective_scale.cpp.
class TrialNoise {
 public:
  TrialNoise(const session::Objective& objective, const History& history);

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

}  // namespace krigtune::search
