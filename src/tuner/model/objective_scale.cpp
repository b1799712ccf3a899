// Expected improvement of a log-normal value. With h ~ N(delta, s^2) the latent's gain over the incumbent y*, d =
// delta/s:
//
//   maximised:  E[(e^h - 1)+]  = e^(delta + s^2/2) Phi(d + s) - Phi(d)
//   minimised:  E[(1 - e^-h)+] = Phi(d) - e^(-delta + s^2/2) Phi(d - s)
//
// (integrals of the normal density; both times y*). They are taken as exp(b) expm1(a - b) of the logarithms a, b of the
// two terms; where a - b has no digits left, e^h - 1 = h to first order gives s (phi(d) + d Phi(d)).
#include "model/objective_scale.h"

#include <algorithm>
#include <cmath>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune {
namespace {

constexpr double kLeastDifference = 1e-6;  // below, the first-order form is the more exact one

double log_relative_improvement(double delta, double stddev, bool maximize) {
  const double d = delta / stddev;
  const double half_variance = 0.5 * stddev * stddev;
  const double a = maximize ? delta + half_variance + log_normal_cdf(d + stddev) : log_normal_cdf(d);
  const double b = maximize ? log_normal_cdf(d) : -delta + half_variance + log_normal_cdf(d - stddev);
  if (a - b < kLeastDifference) return std::log(stddev) + log_h(d);
  // exp(x) - 1 overflows for a certain and enormous gain, where it is exp(x).
  constexpr double kLarge = 40.0;
  return a - b > kLarge ? a : b + std::log(std::expm1(a - b));
}

}  // namespace

ObjectiveScale::ObjectiveScale(const Objective& objective, const History& history)
    : maximize_(objective.maximize), logarithmic_(true) {
  for (const Trial& trial : history) {
    const std::optional<double> value = value_of(trial, objective);
    if (value && *value <= 0.0) logarithmic_ = false;
  }
}

double ObjectiveScale::to_latent(double value) const {
  const double scaled = logarithmic_ ? std::log(value) : value;
  return maximize_ ? scaled : -scaled;
}

double ObjectiveScale::from_latent(double latent) const {
  const double scaled = maximize_ ? latent : -latent;
  return logarithmic_ ? std::exp(scaled) : scaled;
}

double ObjectiveScale::latent_variance(double value, double value_sem) const {
  const double sem = logarithmic_ ? value_sem / value : value_sem;
  return sem * sem;
}

double ObjectiveScale::half_width(double mean, double stddev) const {
  return logarithmic_ ? from_latent(mean) * std::sinh(stddev) : stddev;
}

double ObjectiveScale::latent_stddev(double value, double half_width) const {
  return logarithmic_ ? std::asinh(half_width / value) : half_width;
}

double ObjectiveScale::log_expected_improvement(double mean, double stddev, double best) const {
  const double floored = std::max(stddev, 1e-6);  // as log_expected_improvement of the surrogate
  const double delta = mean - best;
  if (!logarithmic_) return std::log(floored) + log_h(delta / floored);
  return std::log(from_latent(best)) + log_relative_improvement(delta, floored, maximize_);
}

}  // namespace krigtune
