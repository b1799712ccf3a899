#pragma once
// The lower tails of the normal distribution and of expected improvement, for t >= 0:
//
//   Phi(-t) = phi(t) R(t),          R(t) = r(t) / (1 + t)                    (Mills' ratio)
//   h(-t)   = phi(t) (1 - t R(t)),  1 - t R(t) = g(t) / (1 + t)^2,   h(u) = phi(u) + u Phi(u) = u + h(-u)
//
// r and g are smooth on [0, inf], with values between 1 and 1.5, so one polynomial for each is enough. Its argument is
// w = (t - 5) / (t + 5), which maps [0, inf] to [-1, 1] (as for erfc: Schonfelder 1978, "Chebyshev expansions for the
// error and related functions"). There are no branches and no differences of nearly equal numbers, so a loop over these
// functions vectorises.
#include <Eigen/Core>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace krigtune::surrogate {

// Coefficients of g and r in powers of w, lowest first, from normal_tails.py; relative errors 6.0e-16 and 3.6e-16.
inline constexpr std::array<double, 25> kImprovement{
    1.2945411512431624,      -0.36872296454502052,    -0.028030699627535318,  0.26116700784739949,
    -0.2735482037622689,     0.15402166230393094,     -0.029310982484216187,  -0.031861872603751659,
    0.034746227044115681,    -0.016131706730056952,   0.0023283136856683535,  0.0015767797434979535,
    -0.00085272667926087101, -3.5831501133937552e-05, 0.00014692756303243338, -1.7174985619141775e-05,
    -2.3355088213939513e-05, 4.929070094027732e-06,   3.9473272317334125e-06, -9.5670143714237344e-07,
    -6.9683996560442118e-07, 1.3972822924537727e-07,  1.073022959586397e-07,  -1.1626132425962912e-08,
    -9.6840457970299391e-09};
inline constexpr std::array<double, 23> kMills{
    1.1568486282918946,     -0.2294875382521184,    0.077781598868737686,    0.025072179302100359,
    -0.066177600779096304,  0.061505045828185945,   -0.038026592185841389,   0.016348231425036042,
    -0.0042012903291873066, 1.9529678326371773e-05, 0.00045704392357953655,  -0.00013437036855802517,
    -2.480583845192319e-05, 2.2699386557775844e-05, -1.7633239265736746e-07, -3.2597570878457124e-06,
    3.2054316652589574e-07, 4.7240327068313379e-07, -6.5889744911089537e-08, -6.3835755024214132e-08,
    9.0924761340191469e-09, 5.5322922141146196e-09, -7.0738985755615885e-10};
inline constexpr double kTailCentre = 5.0;
inline constexpr double kInverseRootTwoPi = 0.39894228040143267794;
inline constexpr double kLogTwoPi = 1.8378770664093454836;

namespace tails_detail {

/// Horner's rule, unrolled: a loop of 25 would prevent the surrounding loop from being vectorised.
template <std::size_t Size, std::size_t... I>
inline double polynomial(const std::array<double, Size>& c, double w, std::index_sequence<I...>) {
  double sum = 0.0;
  ((sum = sum * w + c[Size - 1 - I]), ...);
  return sum;
}
template <std::size_t Size>
inline double polynomial_at(const std::array<double, Size>& c, double t) {
  return polynomial(c, (t - kTailCentre) / (t + kTailCentre), std::make_index_sequence<Size>());
}

}  // namespace tails_detail

/// R(t) = Phi(-t) / phi(t), t >= 0.
inline double mills_ratio(double t) { return tails_detail::polynomial_at(kMills, t) / (1.0 + t); }

/// h(-t) / phi(t), t >= 0.
inline double improvement_ratio(double t) {
  return tails_detail::polynomial_at(kImprovement, t) / ((1.0 + t) * (1.0 + t));
}

// Exactly max(u, 0) and min(u, 0). Comparisons may trap, which keeps GCC from vectorising.
inline double positive_part(double u) { return 0.5 * (u + std::abs(u)); }
inline double negative_part(double u) { return 0.5 * (u - std::abs(u)); }

/// The two parts of a logarithm: offset + log(factor).
struct LogParts {
  double offset;
  double factor;
};

/// The exponential of this is the argument `bell` of the two functions below: exp(-u^2 / 2) for u > 0, and 1 otherwise,
/// where the exponent is part of the offset.
inline double bell_exponent(double u) { return -0.5 * positive_part(u) * positive_part(u); }

/// Returns log h(u) in two parts.
inline LogParts log_h_parts(double u, double bell) {
  const double tail = kInverseRootTwoPi * improvement_ratio(std::abs(u));
  return {-0.5 * negative_part(u) * negative_part(u), positive_part(u) + bell * tail};
}

/// Returns log Phi(z) in two parts. For z > 0 the offset restores what 1 - Phi(-z) loses by rounding.
inline LogParts log_normal_cdf_parts(double z, double bell) {
  const double tail = bell * kInverseRootTwoPi * mills_ratio(std::abs(z));
  const double sign = std::copysign(1.0, z);
  const double above = positive_part(sign);
  const double rest = 1.0 - tail;
  const double lost = ((1.0 - rest) - tail) / rest;
  return {-0.5 * negative_part(z) * negative_part(z) + above * lost, above - sign * tail};
}

/// d log Phi / dz = phi / Phi.
double log_normal_cdf_derivative(double z);
/// phi(u) / h(u), the derivative of log(s h(m / s)) with respect to log s, where u = m / s.
double normal_density_over_h(double u);

/// The functions at every entry; equal to single calls up to rounding.
Eigen::VectorXd log_h(const Eigen::VectorXd& u);
Eigen::VectorXd log_normal_cdf(const Eigen::VectorXd& z);

}  // namespace krigtune::surrogate
