#pragma once
#include "krigtune/tuner/session.h"

// What a replayed session's table knows, in the objective's unit. Private to this layer.
namespace krigtune {

/// Of one configuration. Empty: the session has no table, or no row of it is ok.
std::optional<double> worth_in_table(const Session& session, const Configuration& configuration);
/// The best of the space. Empty likewise.
std::optional<double> optimum_of_table(const Session& session);

}  // namespace krigtune
