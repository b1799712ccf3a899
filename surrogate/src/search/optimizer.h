#pragma once
#include "krigtune/rng.h"
#include "search/history.h"

namespace krigtune::surrogate {

/// Returns the score that an Optimizer maximises to find its next point; 0 everywhere while nothing is known.
Score score_of(const History& history, const OptimizerOptions& options, Rng& rng);

}  // namespace krigtune::surrogate
