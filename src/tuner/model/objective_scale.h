#pragma once
#include "krigtune/tuner/history.h"

namespace krigtune {

/// The objective as the surrogate sees it: larger is better, and relative differences where all values are positive.
class ObjectiveScale {
 public:
  /// Logarithms, unless a measured value is not positive.
  ObjectiveScale(const Objective& objective, const History& history);

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

}  // namespace krigtune
