#pragma once
#include "krigtune/surrogate/surrogate.h"
#include "search/model/trial_model.h"

namespace krigtune::search {

/// What a trial takes, learned from the seconds of those that ran.
class TrialCost {
 public:
  /// `model`: fitted. The arguments must outlive it.
  TrialCost(const Candidates& candidates, const History& history, const TrialModel& model);

  /// False: trials take about the same, or too little to count.
  bool differs() const { return differs_; }
  /// log E[seconds], one a point; 0 everywhere where trials do not differ. `latent`: the objective's posterior means
  /// there.
  Eigen::VectorXd log_seconds(const surrogate::Points& points, const Eigen::VectorXd& latent) const;
  /// Of a trial like most so far; 0 where trials do not differ.
  double log_typical_seconds() const { return offset_; }
  /// What a trial at `a` takes, in trials at `b`; one point each.
  double ratio(const surrogate::Points& a, const surrogate::Points& b, const TrialModel& model) const;

 private:
  surrogate::Points with_feature(const surrogate::Points& points, const Eigen::VectorXd& latent) const;

  bool differs_ = false;
  double latent_shift_ = 0.0;
  double offset_ = 0.0;
  surrogate::Surrogate surrogate_;
};

}  // namespace krigtune::search
