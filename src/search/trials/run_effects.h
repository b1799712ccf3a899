#pragma once
#include <Eigen/Core>
#include <map>
#include <optional>
#include <string>

#include "search/trials/history.h"

namespace krigtune::search {

/// How much faster or slower the machine was in each run of a session (Proposal::run), estimated from configurations
/// that were measured in several runs (run_effects.cpp). Values of different runs are only compared on a common scale,
/// that of the latest run with a measurement:
///
///   const RunEffects effects(session.objective, history);
///   const std::optional<double> today = effects.value_of(trial);
///
/// A session that was never continued has one run, and its values do not change; the same is true if some values are
/// not positive.
class RunEffects {
 public:
  RunEffects(const session::Objective& objective, const History& history);

  /// Returns the run whose scale is used.
  int latest() const { return latest_; }
  /// Returns what must be added to latent values (ObjectiveScale) of a run.
  double shift(int run) const;
  /// Returns the factor for values of a run.
  double factor(int run) const;
  /// Returns the standard deviation of shift.
  double stddev(int run) const { return uncertainty(run).norm(); }
  /// Returns a row u such that the error of shift is u times a vector of independent standard normal numbers, which is
  /// the same for all runs.
  Eigen::RowVectorXd uncertainty(int run) const;
  Eigen::Index columns() const { return mean_.size(); }

  /// Returns the objective's value of a successful trial, on the common scale.
  std::optional<double> value_of(const journal::Trial& trial) const;

 private:
  session::Objective objective_;
  int latest_ = 0;
  std::map<int, Eigen::Index> column_;  ///< for the runs after the first one
  Eigen::VectorXd mean_;                ///< means of their effects
  Eigen::MatrixXd lower_;               ///< factor of their covariance, which is lower_ * lower_^T
};

/// Returns one sentence if the machine is clearly slower or faster than in the first run, with the trial that shows it;
/// "" if it is not, or if this is unknown.
std::string run_effect_sentence(const session::Objective& objective, const History& history);

}  // namespace krigtune::search
