#pragma once
#include <Eigen/Core>
#include <string>
#include <vector>

#include "search/model/other_objective.h"
#include "search/model/trial_model.h"

// Limits of measured metrics (Session::limits): which measured configurations keep to them, and how likely others do.
namespace krigtune::search {

/// Returns the limits that a successful trial breaks, as "power_w 312 (limit 300)", joined by commas. Empty if it keeps
/// to all, and for other trials. A metric that it did not report counts as broken: it is of a session without that
/// limit.
std::string broken_limits(const session::Session& session, const journal::Trial& trial);

/// Returns the history with the successful trials as failed ones if the means of their configuration break a limit, so
/// that they are never the best. The history itself if the session has no limits.
History without_broken(const session::Session& session, const History& history);

/// Returns one flag per measured configuration: whether it keeps to all limits, by the means of its trials.
std::vector<bool> measured_within(const session::Session& session, const History& history,
                                  const MeasuredConfigurations& measured);

/// The models of the limited metrics, one Gaussian process for each (OtherObjective).
class LimitModels {
 public:
  /// The arguments must outlive it. Learns from the successful trials, and believes running ones at their means.
  LimitModels(const session::Session& session, const Candidates& candidates, const History& history, Rng& rng);

  /// Returns the probability that a configuration's true values are within all limits, as if they were independent of
  /// each other; ones without limits, and while nothing was measured.
  Eigen::VectorXd probability(const CandidateList& list) const;
  bool empty() const { return models_.empty(); }

 private:
  std::vector<OtherObjective> models_;
  std::vector<double> bounds_;  ///< latent, one per model; infinite if all or no values are within
};

}  // namespace krigtune::search
