#pragma once
#include <optional>
#include <string>
#include <vector>

#include "forecast/prior.h"

namespace krigtune::forecast {

/// An ok trial of an earlier run.
struct EarlierTrial {
  space::Configuration configuration;
  double value = 0.0;  ///< in that run's unit
  /// What that run's physics says of it, as Prior::log_values; empty: it has none.
  std::optional<double> log_predicted = std::nullopt;
};

/// What an earlier run measured: all that a warm start takes from it. The run's directory is not needed any more.
struct EarlierRun {
  std::string source;  ///< as the user named it
  std::string metric;  ///< "": it does not say
  bool maximize = true;
  std::vector<EarlierTrial> trials;
};
using EarlierRuns = std::vector<EarlierRun>;

/// Names of the parameters that a warm start of `space` learns from: they are in it, and varied in the run.
std::vector<std::string> shared_parameters(const space::Space& space, const EarlierRun& run);

/// The run as a weak prior: one of `count` of them. `physics`: the session's own, or nullptr. Empty where nothing is to
/// be learned from it: its values contradict physics, or follow from none of the parameters.
std::shared_ptr<const Prior> make_warm_start_prior(const session::Session& session, const EarlierRun& run,
                                                   const Prior* physics, std::size_t count = 1);

/// All that is believed of the session's objective beforehand: physics, then a prior for each run.
Priors make_priors(const session::Session& session, const session::MemoryFilter& filter, const EarlierRuns& runs);

}  // namespace krigtune::forecast
