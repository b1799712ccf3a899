#pragma once
#include "krigtune/surrogate/surrogate.h"
#include "search/model/trial_model.h"

namespace krigtune::search {

/// The duration of a trial, learned from the seconds of those that ran.
class TrialCost {
 public:
  /// `model`: fitted. The arguments must outlive it.
  TrialCost(const History& history, const TrialModel& model);

  /// Returns false if trials take about the same time, or too little to matter.
  bool differs() const { return differs_; }
  /// Returns log E[seconds], one per point; 0 everywhere if durations do not differ. `latent`: the objective's
  /// posterior means at the points.
  Eigen::VectorXd log_seconds(const surrogate::Points& points, const Eigen::VectorXd& latent) const;
  /// Returns the log seconds of a typical trial; 0 if durations do not differ.
  double log_typical_seconds() const { return offset_; }
  /// Returns the duration of a trial at `a` divided by that of a trial at `b`; each is one point.
  double ratio(const surrogate::Points& a, const surrogate::Points& b, const TrialModel& model) const;

 private:
  surrogate::Points with_feature(const surrogate::Points& points, const Eigen::VectorXd& latent) const;

  bool differs_ = false;
  double latent_shift_ = 0.0;
  double offset_ = 0.0;
  surrogate::Surrogate surrogate_;
};

}  // namespace krigtune::search
