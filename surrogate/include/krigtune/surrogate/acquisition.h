#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune {

/// log(phi(u) + u Phi(u)) without cancellation or underflow down to u = -1e100 (Ament et al. 2023, "Unexpected
/// improvements to expected improvement", with an asymptotic series in place of erfcx).
double log_h(double u);
/// d log_h / du = Phi(u) / h(u).
double log_h_derivative(double u);
double log_normal_cdf(double z);

/// log EI for maximisation over `best`, one per prediction; variance is clamped at 1e-12.
Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best);

}  // namespace krigtune
