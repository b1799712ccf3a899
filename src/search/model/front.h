#pragma once
#include <Eigen/Core>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/surrogate/pareto.h"
#include "search/trials/history.h"
#include "search/trials/objective_scale.h"

// The front of a session with several objectives: what was found, what another trial may add, and the user's pick.
namespace krigtune::search {

/// A measured configuration of the front: no other measured configuration is at least as good in every objective and
/// better in one.
struct FrontMember {
  int trial = 0;  ///< its best successful trial by the first objective
  space::Configuration configuration;
  std::vector<double> values;  ///< mean of its measurements for each objective, in the order of the session
  int measurements = 1;
};

/// Returns the front of the successful trials, the best by the first objective first. Configurations beyond a limit
/// are left out. Empty for a session with one objective.
std::vector<FrontMember> front_of(const session::Session& session, const History& history);

/// Returns the count of the rule "patience": the number of closed trials since one became a member of the present
/// front, or with one objective trials_without_gain.
int trials_without_progress(const session::Session& session, const History& history);

/// What a trial may add to the front: the expected hypervolume improvement (krigtune/surrogate/pareto.h), in the
/// product of the objectives' units, as a share of the hypervolume of the front.
class FrontGain {
 public:
  /// `scales`: one per objective. `measured`: latent values, one row per configuration and one column per objective.
  /// `expected`, `stddev`: the latent means and standard deviations of what may still be tried, which determine the
  /// reference point with the measured ones (see front.cpp). `limits`: in the objectives' units; empty: none.
  FrontGain(std::vector<ObjectiveScale> scales, const Eigen::MatrixXd& measured, const Eigen::MatrixXd& expected,
            const Eigen::MatrixXd& stddev, const std::vector<std::optional<double>>& limits);

  /// Returns the expected share that a trial adds whose latent values are Normal(mean_j, stddev_j^2), independent.
  /// While nothing better than the reference was measured, it is the improvement itself, in the objectives' units.
  double share(const Eigen::VectorXd& mean, const Eigen::VectorXd& stddev) const;
  /// Returns what the last `count` rows of `measured` (latent values, the earliest measured first) have added to the
  /// others, divided by `count`, as a share of the hypervolume. 0 while nothing better than the reference was measured.
  double lately_added(const Eigen::MatrixXd& measured, Eigen::Index count) const;
  const Eigen::VectorXd& reference() const { return reference_; }  ///< latent
  double hypervolume() const { return hypervolume_; }              ///< of the measured, in the objectives' units

 private:
  std::vector<ObjectiveScale> scales_;
  Eigen::VectorXd reference_;
  surrogate::UndominatedRegion region_;
  double hypervolume_;
};

/// Returns the index of the preferred member: among those within the bound, the best by the first other objective of
/// the session. Empty if no member is within it, and, for the session's own preference, if it has none.
std::optional<std::size_t> preferred(const session::Session& session, const std::vector<FrontMember>& front);
std::optional<std::size_t> preferred(const session::Session& session, const std::vector<FrontMember>& front,
                                     const session::Preference& preference);

}  // namespace krigtune::search
