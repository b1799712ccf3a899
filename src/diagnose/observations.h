#pragma once
#include <map>
#include <string>

#include "diagnose/job_model.h"
#include "trial/outcome.h"

namespace krigtune::diagnose {

/// Converts a trial's measurements, which have the names that krigtune's runners and recipes use. Empty if the duration
/// of a step is unknown.
std::optional<Observation> observation_of(const session::Session& session, const space::Configuration& configuration,
                                          const trial::Measured& measured);

}  // namespace krigtune::diagnose
