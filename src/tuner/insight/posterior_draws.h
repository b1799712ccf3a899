#pragma once
#include "krigtune/core/rng.h"
#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune {

/// Joint draws of the posterior's deviation from its mean at m points: m x count. O(m r^2) for covariances of rank r.
Eigen::MatrixXd posterior_deviations(const GaussianProcess& process, const Points& points, int count, Rng& rng);

}  // namespace krigtune
