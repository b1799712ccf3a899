#include "vector_unit/normal_tails.h"

#include <boost/math/special_functions/erf.hpp>
#include <numbers>

#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/success_model.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {
namespace {

using Eigen::VectorXd;

/// phi(u), u >= 0.
double density(double u) { return kInverseRootTwoPi * std::exp(bell_exponent(u)); }

double logarithm(const LogParts& parts) { return parts.offset + std::log(parts.factor); }

}  // namespace

double log_h(double u) { return logarithm(log_h_parts(u, std::exp(bell_exponent(u)))); }

double log_h_derivative(double u) {
  if (u < 0.0) return mills_ratio(-u) / improvement_ratio(-u);
  const double phi = density(u);
  return (1.0 - phi * mills_ratio(u)) / (u + phi * improvement_ratio(u));
}

double log_normal_cdf(double z) { return logarithm(log_normal_cdf_parts(z, std::exp(bell_exponent(z)))); }

double log_normal_cdf_derivative(double z) {
  if (z < 0.0) return 1.0 / mills_ratio(-z);
  const double phi = density(z);
  return phi / (1.0 - phi * mills_ratio(z));
}

double probit(double probability) { return -std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * probability); }

double normal_density_over_h(double u) {
  if (u < 0.0) return 1.0 / improvement_ratio(-u);
  const double phi = density(u);
  return phi / (u + phi * improvement_ratio(u));
}

VectorXd log_h(const VectorXd& u) {
  VectorXd result(u.size());
  vector_unit().log_h(u.size(), u.data(), result.data());
  return result;
}

VectorXd log_normal_cdf(const VectorXd& z) {
  VectorXd result(z.size());
  vector_unit().log_normal_cdf(z.size(), z.data(), result.data());
  return result;
}

}  // namespace krigtune::surrogate
