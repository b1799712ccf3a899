#include "vector_unit/normal_tails.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune::normal_tails_test {

using Eigen::VectorXd;

struct Reference {
  double u;
  double value;
};

/// Relative for large values, absolute for small ones.
double error(double got, double want) { return std::abs(got - want) / std::max(1.0, std::abs(want)); }

// All reference values are from mpmath with at least 60 digits.
const std::vector<Reference> kLogH{
    {30, 3.4011973816621553754},     {8, 2.0794415416798359377},      {5, 1.6094379231264313851},
    {3, 1.0987396653277078},         {2, 0.69738354578822831219},     {1, 0.080026218849306940},
    {0.75, -0.12650820689195298093}, {0.25, -0.62297823090676788688}, {0, -0.91893853320467274},
    {-0.25, -1.2505589553352224428}, {-0.5, -1.6205162643873199},     {-1, -2.4851210257126413},
    {-1.5, -3.5299359208057098515},  {-2, -4.7687835239171142},       {-3, -7.8696860596030285171},
    {-4, -11.849061577550663111},    {-5, -16.74430116266099},        {-7.5, -33.124094345534699403},
    {-10, -55.553122036122356},      {-12, -77.909100545007348277},   {-15, -118.84817068411358},
    {-20, -206.9178385094251},       {-25, -319.86146358149595433},   {-30, -457.724653760598},
    {-38, -730.19618340211373916},   {-40, -808.29856835661996024},   {-50, -1258.7441828684609},
    {-100, -5010.1295788002498},     {-1e3, -500014.73445209116},     {-1e4, -50000019.339619307},
    {-1e5, -5000000023.9447895},     {-1e6, -500000000028.54995965},  {-1e8, -5000000000000037.8}};

TEST(LogH, HasTheReferenceValues) {
  for (const auto& [u, want] : kLogH) EXPECT_LE(error(surrogate::log_h(u), want), 1e-15) << "u = " << u;
}

TEST(LogH, DerivativeHasTheReferenceValues) {
  const Reference kRounded[] = {{0, 1.25331413732},   {-0.5, 1.55987314835}, {-1, 1.90427123333},  {-2, 2.67941688396},
                                {-5, 5.36181624129},  {-10, 10.1943830334},  {-20, 20.0992628111}, {-30, 30.0664461542},
                                {-50, 50.0399521339}, {-100, 100.019994004}};
  for (const auto& [u, want] : kRounded) EXPECT_LE(error(surrogate::log_h_derivative(u), want), 1e-11) << "u = " << u;
  const Reference kValues[] = {
      {30, 0.033333333333333333333},  {5, 0.19999994053122004649},   {2, 0.48655931878528386862},
      {0.75, 0.87766872761255761341}, {0.25, 1.1162715463877813478}, {-0.25, 1.4014356710866813222},
      {-1.5, 2.2795806941564461644},  {-4, 4.4324837418731182906},   {-12, 12.163352571585739843},
      {-40, 40.049906657648518193},   {-1e3, 1000.001999994000042},  {-1e6, 1000000.000002}};
  for (const auto& [u, want] : kValues) EXPECT_LE(error(surrogate::log_h_derivative(u), want), 1e-15) << "u = " << u;
}

TEST(LogH, DerivativeIsTheDifference) {
  for (const double u : {2.5, 0.3, 0.0, -0.9, -1.1, -4.0, -14.5, -15.5, -60.0}) {
    // log h is about u^2 / 2, with a rounding error of 1e-13 at the last point, so h = 1e-4 gives 1e-8.
    const double step = 1e-4;
    const double difference = (surrogate::log_h(u + step) - surrogate::log_h(u - step)) / (2.0 * step);
    EXPECT_LE(error(surrogate::log_h_derivative(u), difference), 1e-7) << "u = " << u;
  }
}

/// R(t) and 1 - t R(t) are I_0 and I_1 of I_n = integral of s^n / n! exp(-s t - s^2 / 2) over s > 0. Integration by
/// parts gives I_(n - 2) = t I_(n - 1) + n I_n with I_(-1) = 1, so a_n = I_n / I_(n - 1) is 1 / (t + (n + 1) a_(n +
/// 1)). The downward recursion has only sums of positive numbers.
struct Tails {
  long double mills;
  long double improvement;
};
Tails tails_by_recurrence(long double t) {
  long double a = 0;
  long double above = 0;
  for (int n = 20000; n >= 0; --n) {
    above = a;
    a = 1 / (t + static_cast<long double>(n + 1) * a);
  }
  return {a, a * above};
}

TEST(NormalTails, EqualTheirContinuedFractionEverywhere) {
  // The depth is sufficient from t = 0.3 on, because the recursion converges as exp(-2 t sqrt(2 n)).
  for (double t = 0.3; t <= 1e8; t *= t < 30.0 ? 1.01 : 1.2) {
    const Tails want = tails_by_recurrence(t);
    EXPECT_LE(std::abs(static_cast<double>(surrogate::mills_ratio(t) / want.mills - 1)), 2e-15) << "t = " << t;
    EXPECT_LE(std::abs(static_cast<double>(surrogate::improvement_ratio(t) / want.improvement - 1)), 2e-15)
        << "t = " << t;
  }
}

TEST(NormalTails, EqualTheErrorFunctionNearZero) {
  const long double root_half_pi = std::sqrt(std::acos(-1.0L) / 2);
  for (double t = 0.0; t <= 2.0; t += 0.003) {
    const long double x = t;
    const long double mills = root_half_pi * std::exp(x * x / 2) * std::erfc(x / std::sqrt(2.0L));
    EXPECT_LE(std::abs(static_cast<double>(surrogate::mills_ratio(t) / mills - 1)), 2e-15) << "t = " << t;
    EXPECT_LE(std::abs(static_cast<double>(surrogate::improvement_ratio(t) / (1 - x * mills) - 1)), 2e-15)
        << "t = " << t;
  }
}

TEST(LogH, EqualsTheLogarithmOfItsFormulaWhereThatIsAccurate) {
  const long double log_root_two_pi = std::log(2 * std::acos(-1.0L)) / 2;
  for (double u = -3.0; u <= 40.0; u += 0.01) {
    const long double x = u;
    const long double h = std::exp(-x * x / 2 - log_root_two_pi) + x * std::erfc(-x / std::sqrt(2.0L)) / 2;
    EXPECT_LE(std::abs(surrogate::log_h(u) - static_cast<double>(std::log(h))), 2e-15) << "u = " << u;
  }
}

TEST(LogH, EqualsTheIntegralAllAlongTheTail) {
  // h(u) / phi(u) is the integral of t exp(u t - t^2 / 2) over t > 0, without cancellation. Simpson's rule.
  for (double u = -1.0; u >= -40.0; u -= 0.77) {
    constexpr int kIntervals = 20000;  // the rule's error, (u width)^4 / 60, is 3e-13
    const long double width = 40.0L / -u / kIntervals;
    long double sum = 0;
    for (int i = 1; i <= kIntervals; ++i) {
      const long double t = width * i;
      sum += (i == kIntervals ? 1 : (i % 2 == 1 ? 4 : 2)) * t * std::exp(u * t - t * t / 2);
    }
    const long double log_two_pi = std::log(2 * std::acos(-1.0L));
    const auto want =
        static_cast<double>(std::log(sum * width / 3) - static_cast<long double>(u) * u / 2 - log_two_pi / 2);
    EXPECT_LE(std::abs(surrogate::log_h(u) - want), 1e-12) << "u = " << u;
  }
}

TEST(LogH, HasNoSeamAndNeverUnderflows) {
  for (const double seam : {0.0, -1.0, -5.0, -15.0}) {
    const double above = std::nextafter(seam, 100.0);
    const double below = std::nextafter(seam, -100.0);
    EXPECT_LE(error(surrogate::log_h(above), surrogate::log_h(below)), 1e-15);
    EXPECT_LE(error(surrogate::log_h_derivative(above), surrogate::log_h_derivative(below)), 1e-15);
    EXPECT_LE(error(surrogate::log_normal_cdf(above), surrogate::log_normal_cdf(below)), 1e-15);
  }
  EXPECT_LE(error(surrogate::log_h(-1e100), -5e199), 1e-15);
  EXPECT_LE(error(surrogate::log_h_derivative(-1e100), 1e100), 1e-15);
  EXPECT_LE(error(surrogate::log_h(1e100), std::log(1e100)), 1e-15);
  EXPECT_LE(error(surrogate::log_normal_cdf(-1e100), -5e199), 1e-15);
}

TEST(LogNormalCdf, HasTheReferenceValues) {
  const Reference kValues[] = {
      {2, -0.023012909328963488465},  {1, -0.17275377902344988953},   {0.5, -0.36894641528865639307},
      {0, -0.69314718055994530942},   {-0.5, -1.1759117615936186089}, {-1, -1.8410216450092635},
      {-5, -15.064998393988726},      {-10, -53.231285150512471},     {-20, -203.91715537109726},
      {-38, -726.55721601882013},     {-100, -5005.5242086942051},    {-1e3, -500007.82669481218431},
      {-1e6, -500000000014.73444909}, {-1e8, -5000000000000019.3396}};
  for (const auto& [z, want] : kValues) EXPECT_LE(error(surrogate::log_normal_cdf(z), want), 1e-15) << "z = " << z;
  // For large z, log Phi = -Phi(-z), which must not be rounded to zero.
  EXPECT_LE(std::abs(surrogate::log_normal_cdf(5.0) / -2.8665161296376359338e-7 - 1.0), 1e-14);
  EXPECT_LE(std::abs(surrogate::log_normal_cdf(10.0) / -7.6198530241605260660e-24 - 1.0), 1e-14);
}

TEST(LogNormalCdf, DerivativeHasTheReferenceValues) {
  const Reference kValues[] = {
      {10, 7.6945986267064193463e-23}, {5, 1.4867199409049057124e-6}, {2, 0.055247862678989959102},
      {0.5, 0.50916043383703348583},   {0, 0.79788456080286535588},   {-0.5, 1.1410777703680644809},
      {-5, 5.1865039671258421156},     {-20, 20.049753068527850542},  {-100, 100.00999800099926071}};
  for (const auto& [z, want] : kValues)
    EXPECT_LE(std::abs(surrogate::log_normal_cdf_derivative(z) / want - 1.0), 1e-14) << "z = " << z;
}

TEST(NormalTails, OfArraysAreThoseOfNumbers) {
  // 1000 is not a multiple of a block or of a vector.
  VectorXd u = VectorXd::LinSpaced(1000, -60.0, 40.0);
  u[0] = -1e8;
  u[999] = 1e100;
  const VectorXd h = surrogate::log_h(u);
  const VectorXd cdf = surrogate::log_normal_cdf(u);
  for (Eigen::Index i = 0; i < u.size(); ++i) {
    EXPECT_LE(error(h[i], surrogate::log_h(u[i])), 1e-14) << "u = " << u[i];
    EXPECT_LE(error(cdf[i], surrogate::log_normal_cdf(u[i])), 1e-14) << "u = " << u[i];
  }
}

}  // namespace krigtune::normal_tails_test
