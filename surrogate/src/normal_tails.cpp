// log h and log Phi at many arguments in three passes over a block: exp, the polynomials, log.
#include "normal_tails.h"

#include <algorithm>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

/// phi(u), u >= 0.
double density(double u) { return kInverseRootTwoPi * std::exp(bell_exponent(u)); }

double logarithm(const LogParts& parts) { return parts.offset + std::log(parts.factor); }

constexpr Index kBlock = 256;  // four arrays of a block fill half of a first-level cache

template <class Parts>
VectorXd logarithms(const VectorXd& arguments, Parts parts_at) {
  using Block = Eigen::Array<double, kBlock, 1>;
  VectorXd result(arguments.size());
  Block u = Block::Zero();
  Block bell;
  Block offset;
  Block factor;
  for (Index first = 0; first < arguments.size(); first += kBlock) {
    const Index count = std::min(kBlock, arguments.size() - first);
    u.head(count) = arguments.segment(first, count);
    for (Index i = 0; i < kBlock; ++i) bell[i] = bell_exponent(u[i]);
    bell = bell.exp();
    for (Index i = 0; i < kBlock; ++i) {
      const LogParts parts = parts_at(u[i], bell[i]);
      offset[i] = parts.offset;
      factor[i] = parts.factor;
    }
    result.segment(first, count) = (offset + factor.log()).head(count);
  }
  return result;
}

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

double normal_density_over_h(double u) {
  if (u < 0.0) return 1.0 / improvement_ratio(-u);
  const double phi = density(u);
  return phi / (u + phi * improvement_ratio(u));
}

VectorXd log_h(const VectorXd& u) {
  return logarithms(u, [](double x, double bell) { return log_h_parts(x, bell); });
}

VectorXd log_normal_cdf(const VectorXd& z) {
  return logarithms(z, [](double x, double bell) { return log_normal_cdf_parts(x, bell); });
}

}  // namespace krigtune
