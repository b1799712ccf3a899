#pragma once
#include <optional>

#include "cost/utilization.h"
#include "session/session.h"
#include "space/configuration.h"
#include "trial/outcome.h"

namespace krigtune::forecast {

/// Returns the fraction of the GPUs' peak that a measured trial used. The step time is the metric step_time_s if it was
/// measured; otherwise it follows from the objective if that is a speed in our units. Empty if the session has no
/// workload or names no GPU with a known peak, if the configuration is not modelled, for replayed tables (whose units
/// are unknown), or if no time follows.
std::optional<cost::Utilization> utilization_of(const session::Session& session,
                                                const space::Configuration& configuration,
                                                const trial::Measured& measured);

/// Returns the utilization of a step of this configuration that takes `step_time_s`.
std::optional<cost::Utilization> utilization_of(const session::Session& session,
                                                const space::Configuration& configuration, double step_time_s);

}  // namespace krigtune::forecast
