#pragma once
// One process for all tests of values with bounds.
#include <cmath>

#include "krigtune/surrogate/success_model.h"

namespace krigtune::reference {

inline constexpr double kNoise = 0.3;

/// Lengthscales of 0.5, a signal variance of 1.3^2, the noise above.
inline Eigen::VectorXd theta_of(Eigen::Index columns, double noise = kNoise) {
  Eigen::VectorXd theta = Eigen::VectorXd::Constant(columns + 2, std::log(0.5));
  theta[columns] = 2.0 * std::log(1.3);
  theta[columns + 1] = std::log(noise);
  return theta;
}

inline surrogate::CensoredFit fit_of(const surrogate::Observations& values, const surrogate::Bounds& bounds,
                                     const Eigen::VectorXd& theta) {
  return surrogate::condition_on_bounds(surrogate::make_kernel(surrogate::KernelKind::kMatern52),
                                        surrogate::Mean::zero(), values, bounds, theta);
}

}  // namespace krigtune::reference
