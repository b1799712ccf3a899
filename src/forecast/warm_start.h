#pragma once
#include <optional>
#include <string>
#include <vector>

#include "forecast/prior.h"

namespace krigtune::forecast {

/// A successful trial of an earlier run.
struct EarlierTrial {
  space::Configuration configuration;
  double value = 0.0;  ///< in the unit of that run
  /// The prediction of that run's physics, as in Prior::log_values; empty if the run has none.
  std::optional<double> log_predicted = std::nullopt;
};

/// Everything that a warm start needs from an earlier run; the run's directory is not read again.
struct EarlierRun {
  std::string source;  ///< as the user named it
  std::string metric;  ///< "": unknown
  bool maximize = true;
  std::vector<EarlierTrial> trials;
};
using EarlierRuns = std::vector<EarlierRun>;

/// Returns the names of the parameters from which a warm start of `space` can learn: parameters of the space that
/// varied in the run.
std::vector<std::string> shared_parameters(const space::Space& space, const EarlierRun& run);

/// Returns the run as a weak prior, one of `count`. `physics`: the session's own prior, or nullptr. Empty if nothing
/// can be learned from the run, because its values contradict physics or depend on none of the parameters.
std::shared_ptr<const Prior> make_warm_start_prior(const session::Session& session, const EarlierRun& run,
                                                   const Prior* physics, std::size_t count = 1);

/// Returns all priors of the session's objective: physics, then one for each run.
Priors make_priors(const session::Session& session, const session::MemoryFilter& filter, const EarlierRuns& runs);

}  // namespace krigtune::forecast
