#pragma once
#include "search/trials/history.h"

namespace krigtune::search {

/// The objective on the surrogate's scale: larger is better, and differences are relative if all values are positive.
class ObjectiveScale {
 public:
  /// Uses logarithms unless a measured value is not positive, or the objective is not compared by ratios.
  ObjectiveScale(const session::Objective& objective, const History& history);

  double to_latent(double value) const;
  double from_latent(double latent) const;
  /// Returns the variance of the latent of a value with that standard error (first order).
  double latent_variance(double value, double value_sem) const;
  /// Returns log E[improvement over from_latent(best)], in the objective's units, for a latent Normal(mean, stddev^2).
  double log_expected_improvement(double mean, double stddev, double best) const;
  /// Returns half the 68 % interval of the value, in the objective's units, for a latent Normal(mean, stddev^2).
  double half_width(double mean, double stddev) const;
  /// The inverse of half_width for the stddev: half_width(to_latent(value), x) = half_width.
  double latent_stddev(double value, double half_width) const;
  bool logarithmic() const { return logarithmic_; }
  bool maximize() const { return maximize_; }

 private:
  bool maximize_;
  bool logarithmic_;
};

/// The uncertainty of a trial's value, see objective_scale.cpp.
class TrialNoise {
 public:
  TrialNoise(const session::Objective& objective, const History& history);

  /// Returns the standard error of a measured value as an estimate of its configuration's true value, with the
  /// variation within a run and between runs. A value without a stated spread (value_sem = 0) keeps none, because its
  /// origin is unknown.
  double total_sem(double value, double value_sem) const;
  /// Returns the relative standard deviation between runs, in addition to a run's own standard error.
  double between_fraction() const { return between_fraction_; }

 private:
  double between_fraction_;
};

}  // namespace krigtune::search
