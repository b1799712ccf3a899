#pragma once
#include <Eigen/Core>
#include <map>
#include <optional>
#include <string>

#include "search/trials/history.h"

namespace krigtune::search {

/// How much faster or slower the machine was in each run of a session (Proposal::run). Configurations that were
/// measured in several runs say so, see run_effects.cpp. Values of different runs are compared only after they were
/// brought to one scale, that of the latest run that has measured anything:
///
///   const RunEffects effects(session.objective, history);
///   const std::optional<double> today = effects.value_of(trial);
///
/// A session that was never continued has one run, and its values stay as they are; so do all where some are not
/// positive.
class RunEffects {
 public:
  RunEffects(const session::Objective& objective, const History& history);

  /// The run to whose scale values are brought.
  int latest() const { return latest_; }
  /// What latent values (ObjectiveScale) of a run gain on that scale.
  double shift(int run) const;
  /// What values of a run are multiplied by on that scale.
  double factor(int run) const;
  /// Standard deviation of shift.
  double stddev(int run) const { return uncertainty(run).norm(); }
  /// What is not known of shift is this row times as many independent standard normal numbers, the same for all runs.
  Eigen::RowVectorXd uncertainty(int run) const;
  Eigen::Index columns() const { return mean_.size(); }

  /// The objective's value of an ok trial, on that scale.
  std::optional<double> value_of(const journal::Trial& trial) const;

 private:
  session::Objective objective_;
  int latest_ = 0;
  std::map<int, Eigen::Index> column_;  ///< of the runs after the first one
  Eigen::VectorXd mean_;                ///< of their effects
  Eigen::MatrixXd lower_;               ///< of their covariance, which is lower_ * lower_^T
};

/// One sentence on a machine that is clearly slower or faster than in the first run, with the trial that says so. "":
/// it is not, or nothing is known of it.
std::string run_effect_sentence(const session::Objective& objective, const History& history);

}  // namespace krigtune::search
