#pragma once
// Computes posterior moments of a few correlated Gaussian latent values under other likelihoods by brute force.
#include <cmath>
#include <functional>

#include "surrogate/reference_gp.h"

namespace krigtune::reference {

inline Real normal_cdf(Real z) { return std::erfc(-z / std::sqrt(static_cast<Real>(2))) / 2; }

struct Integral {
  Real evidence = 0;  ///< expectation of the likelihood under the prior
  Vector mean;
  Vector variance;
  Real answer = 0;  ///< posterior expectation of `question`
};

/// Returns the lower triangular square root of a covariance by the textbook recursion.
inline Matrix triangular_root(const Matrix& covariance) {
  const std::size_t n = covariance.size();
  Matrix root(n, Vector(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Real rest = covariance[i][j];
      for (std::size_t k = 0; k < j; ++k) rest -= root[i][k] * root[j][k];
      root[i][j] = i == j ? std::sqrt(rest) : rest / root[j][j];
    }
  }
  return root;
}

using OfLatent = std::function<Real(const Vector&)>;

/// For f ~ Normal(mean, covariance), f = mean + root z, integrates by the trapezium rule over z in [-9, 9]^n. This is
/// exact up to rounding if the likelihood does not change within about three `steps`.
inline Integral integrate(const Vector& mean, const Matrix& covariance, const OfLatent& likelihood, Real step,
                          const OfLatent& question) {
  const std::size_t n = mean.size();
  const Matrix root = triangular_root(covariance);
  const int half = static_cast<int>(9 / step);
  std::vector<int> index(n, -half);
  Integral sum{0, Vector(n, 0), Vector(n, 0), 0};
  Real all = 0;
  for (std::size_t carry = 0; carry < n;) {
    Vector f = mean;
    Real square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      square += index[i] * step * index[i] * step;
      for (std::size_t j = 0; j <= i; ++j) f[i] += root[i][j] * index[j] * step;
    }
    const Real density = std::exp(-square / 2);
    const Real weight = density * likelihood(f);
    all += density;
    sum.evidence += weight;
    sum.answer += weight * question(f);
    for (std::size_t i = 0; i < n; ++i) {
      sum.mean[i] += weight * f[i];
      sum.variance[i] += weight * f[i] * f[i];
    }
    for (carry = 0; carry < n && ++index[carry] > half; ++carry) index[carry] = -half;
  }
  for (std::size_t i = 0; i < n; ++i) {
    sum.mean[i] /= sum.evidence;
    sum.variance[i] = sum.variance[i] / sum.evidence - sum.mean[i] * sum.mean[i];
  }
  sum.answer /= sum.evidence;
  sum.evidence /= all;
  return sum;
}

inline Integral integrate(const Vector& mean, const Matrix& covariance, const OfLatent& likelihood, Real step) {
  return integrate(mean, covariance, likelihood, step, [](const Vector&) { return 0; });
}

}  // namespace krigtune::reference
