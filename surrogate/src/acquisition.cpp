// Expected improvement and its ingredients as logarithms, for maximisation:
//
//   EI(x) = stddev h(u),   u = (mean - best) / stddev,   h(u) = phi(u) + u Phi(u)
//
// For u <= -1, h / phi = 1 - |u| R with Mills' ratio R = Phi / phi = sqrt(pi/2) exp(u^2/2) erfc(-u/sqrt 2): a
// difference that stays accurate down to u = -15 (5e-12); below, its asymptotic series (Abramowitz & Stegun 26.2.13).
// Ament et al. 2023, "Unexpected improvements to expected improvement for Bayesian optimization".
#include "krigtune/surrogate/acquisition.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace krigtune {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;
constexpr double kSqrtHalfPi = 1.2533141373155002512;
constexpr double kTail = -1.0;     // above, h is computed as it is written
constexpr double kSeries = -15.0;  // below, eight terms of the series are exact to 5e-12
constexpr double kMinVariance = 1e-12;

double normal_density(double u) { return std::exp(-0.5 * u * u - kHalfLogTwoPi); }
double normal_cdf(double u) { return 0.5 * std::erfc(-u / std::numbers::sqrt2); }

/// h(u) / phi(u) for u <= -1.
double tail_ratio(double u) {
  if (u <= kSeries) {
    const double v = 1.0 / (u * u);
    constexpr double kCoefficients[] = {-2027025.0, 135135.0, -10395.0, 945.0, -105.0, 15.0, -3.0, 1.0};
    double sum = 0.0;
    for (const double coefficient : kCoefficients) sum = sum * v + coefficient;
    return v * sum;
  }
  const double mills = kSqrtHalfPi * std::exp(0.5 * u * u) * std::erfc(-u / std::numbers::sqrt2);
  return 1.0 + u * mills;
}

/// Phi(u) / phi(u) for u <= -1.
double mills_ratio(double u) { return (1.0 - tail_ratio(u)) / -u; }

}  // namespace

double log_h(double u) {
  if (u > kTail) return std::log(normal_density(u) + u * normal_cdf(u));
  return -0.5 * u * u - kHalfLogTwoPi + std::log(tail_ratio(u));
}

double log_h_derivative(double u) {
  if (u > kTail) return normal_cdf(u) / (normal_density(u) + u * normal_cdf(u));
  return mills_ratio(u) / tail_ratio(u);
}

double log_normal_cdf(double z) {
  if (z > kTail) return std::log1p(-0.5 * std::erfc(z / std::numbers::sqrt2));
  return -0.5 * z * z - kHalfLogTwoPi + std::log(mills_ratio(z));
}

Eigen::VectorXd log_expected_improvement(const Prediction& prediction, double best) {
  Eigen::VectorXd result(prediction.mean.size());
  for (Eigen::Index i = 0; i < result.size(); ++i) {
    const double stddev = std::sqrt(std::max(prediction.variance[i], kMinVariance));
    result[i] = log_h((prediction.mean[i] - best) / stddev) + std::log(stddev);
  }
  return result;
}

}  // namespace krigtune
