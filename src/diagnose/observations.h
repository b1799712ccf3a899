#pragma once
#include <map>
#include <string>

#include "diagnose/job_model.h"
#include "trial/outcome.h"

namespace krigtune::diagnose {

/// What a trial's numbers say, by the names that krigtune's runners and recipes give them. Empty where they do not tell
/// how long a step took.
std::optional<Observation> observation_of(const session::Session& session, const space::Configuration& configuration,
                                          const trial::Measured& measured);

}  // namespace krigtune::diagnose
