#pragma once
#include <optional>

#include "cost/utilization.h"
#include "session/session.h"
#include "space/configuration.h"
#include "trial/outcome.h"

namespace krigtune::forecast {

/// How much of the GPUs' peak a measured trial used. Its time of a step is what it measured as step_time_s, else what
/// its objective says where that is a speed in our units. Empty where the session has no workload or names no GPU of a
/// known peak, where the configuration is not modelled, for replayed tables, whose units are not known, and where no
/// time follows.
std::optional<cost::Utilization> utilization_of(const session::Session& session,
                                                const space::Configuration& configuration,
                                                const trial::Measured& measured);

/// Of a step of this configuration that takes `step_time_s`.
std::optional<cost::Utilization> utilization_of(const session::Session& session,
                                                const space::Configuration& configuration, double step_time_s);

}  // namespace krigtune::forecast
