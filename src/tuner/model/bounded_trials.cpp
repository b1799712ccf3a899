// A trial that was ended early is a censored observation: its noisy value is at most b. With the posterior of the
// function at its point Normal(m, v) and noise of variance s^2, the likelihood is Phi((b - f) / s), and with
//
//   z = (b - m) / sqrt(v + s^2),   h = phi(z) / Phi(z)
//   mean     m - v h / sqrt(v + s^2)
//   variance v - v^2 h (z + h) / (v + s^2)
//
// are the moments of the function given the bound (Rasmussen & Williams 2006, equations 3.82 to 3.85, mirrored). The
// Gaussian observation that leaves exactly these moments takes the bound's place: assumed-density filtering, one pass
// of the expectation propagation of surrogate/censored.h, which would also go over the others again. Bounds lie far
// below the best, so that second thoughts on them change nothing that is asked.
#include "model/bounded_trials.h"

#include <algorithm>
#include <cmath>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune {
namespace {

struct Substitute {
  double value = 0.0;
  double variance = 0.0;  ///< of the observation, all noise in it
};

double log_normal_density(double z) {
  constexpr double kLogSqrtTwoPi = 0.918938533204672742;
  return -0.5 * z * z - kLogSqrtTwoPi;
}

// Empty: nothing is learned, the function was believed to be lower anyway.
std::optional<Substitute> substitute_for(double mean, double variance, double noise_variance, double bound) {
  const double total = variance + noise_variance;
  if (!(variance > 0.0)) return std::nullopt;
  const double z = (bound - mean) / std::sqrt(total);
  const double h = std::exp(log_normal_density(z) - log_normal_cdf(z));
  const double shrinkage = h * (z + h);  // within 0 and 1
  constexpr double kLeast = 1e-9;
  if (!(shrinkage > kLeast)) return std::nullopt;
  const double new_mean = mean - variance * h / std::sqrt(total);
  const double new_variance = variance * (1.0 - variance / total * shrinkage);
  const double precision = shrinkage / (total - variance * shrinkage);  // 1 / new_variance - 1 / variance
  return Substitute{mean + (new_mean - mean) / (new_variance * precision), 1.0 / precision};
}

}  // namespace

void condition_on_upper_bounds(Surrogate& surrogate, const Points& points, const Eigen::VectorXd& bounds) {
  const double noise_variance = surrogate.noise_stddev() * surrogate.noise_stddev();
  for (Eigen::Index row = 0; row < bounds.size(); ++row) {
    const Points point = points.slice(row, 1);
    const Prediction prediction = surrogate.predict(point);
    const auto instead = substitute_for(prediction.mean(0), prediction.variance(0), noise_variance, bounds(row));
    if (!instead) continue;
    // The surrogate adds its own noise to what is stated; a bound never says more than a noisy value would.
    Observations observation{point, Eigen::VectorXd::Constant(1, instead->value),
                             Eigen::VectorXd::Constant(1, std::max(instead->variance - noise_variance, 0.0))};
    surrogate.append(observation);
  }
}

}  // namespace krigtune
