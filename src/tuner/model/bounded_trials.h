#pragma once
#include "krigtune/surrogate/surrogate.h"

namespace krigtune {

/// Tells a fitted surrogate of trials that were ended early: at each point the noisy value is at most the bound (latent
/// units, larger better). Hyperparameters stay as they were learned from what was measured.
void condition_on_upper_bounds(Surrogate& surrogate, const Points& points, const Eigen::VectorXd& bounds);

}  // namespace krigtune
