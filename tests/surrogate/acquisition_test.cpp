#include "krigtune/surrogate/acquisition.h"

#include <gtest/gtest.h>

#include <cmath>

namespace krigtune {
namespace {

struct Reference {
  double u;
  double value;
};

/// Relative for large values, absolute for small ones.
double error(double got, double want) { return std::abs(got - want) / std::max(1.0, std::abs(want)); }

// All reference values: 60-digit arithmetic.
TEST(LogH, HasTheReferenceValues) {
  const Reference kValues[] = {{3, 1.0987396653277078},     {1, 0.080026218849306940},   {0, -0.91893853320467274},
                               {-0.5, -1.6205162643873199}, {-1, -2.4851210257126413},   {-2, -4.7687835239171142},
                               {-5, -16.74430116266099},    {-10, -55.553122036122356},  {-15, -118.84817068411358},
                               {-20, -206.9178385094251},   {-30, -457.724653760598},    {-50, -1258.7441828684609},
                               {-100, -5010.1295788002498}, {-1e3, -500014.73445209116}, {-1e4, -50000019.339619307},
                               {-1e5, -5000000023.9447895}, {-1e8, -5000000000000037.8}};
  for (const auto& [u, want] : kValues) EXPECT_LE(error(log_h(u), want), 1e-11) << "u = " << u;
}

TEST(LogH, DerivativeHasTheReferenceValues) {
  const Reference kValues[] = {{0, 1.25331413732},   {-0.5, 1.55987314835}, {-1, 1.90427123333},  {-2, 2.67941688396},
                               {-5, 5.36181624129},  {-10, 10.1943830334},  {-20, 20.0992628111}, {-30, 30.0664461542},
                               {-50, 50.0399521339}, {-100, 100.019994004}};
  for (const auto& [u, want] : kValues) EXPECT_LE(error(log_h_derivative(u), want), 1e-11) << "u = " << u;
}

TEST(LogH, DerivativeIsTheDifference) {
  for (const double u : {2.5, 0.3, -0.9, -1.1, -4.0, -14.5, -15.5, -60.0}) {
    // log h is about u^2 / 2 with a rounding error of 1e-12 near the branches: h = 1e-4 leaves 1e-8.
    const double step = 1e-4;
    const double difference = (log_h(u + step) - log_h(u - step)) / (2.0 * step);
    EXPECT_LE(error(log_h_derivative(u), difference), 1e-7) << "u = " << u;
  }
}

TEST(LogH, EqualsTheIntegralAllAlongTheTail) {
  // h(u) / phi(u) is the integral of t exp(u t - t^2 / 2) over t > 0: no cancellation. Simpson's rule.
  for (double u = -1.0; u >= -40.0; u -= 0.23) {
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
    // Absolute: the change of log h between candidates is what orders them. The worst place is u = -15.
    EXPECT_LE(std::abs(log_h(u) - want), 1e-11) << "u = " << u;
  }
}

TEST(LogH, JoinsItsBranchesAndNeverUnderflows) {
  for (const double branch : {-1.0, -15.0}) {
    const double above = std::nextafter(branch, 0.0);
    const double below = std::nextafter(branch, -100.0);
    EXPECT_LE(error(log_h(above), log_h(below)), 1e-11);
    EXPECT_LE(error(log_h_derivative(above), log_h_derivative(below)), 1e-10);
  }
  EXPECT_LE(error(log_h(-1e100), -5e199), 1e-15);
  EXPECT_LE(error(log_h_derivative(-1e100), 1e100), 1e-15);
}

TEST(LogNormalCdf, HasTheReferenceValues) {
  const Reference kValues[] = {{-1, -1.8410216450092635},   {-5, -15.064998393988726},  {-10, -53.231285150512471},
                               {-20, -203.91715537109726},  {-38, -726.55721601882013}, {-100, -5005.5242086942051},
                               {0, -0.69314718055994530942}};
  for (const auto& [z, want] : kValues) EXPECT_LE(error(log_normal_cdf(z), want), 1e-11) << "z = " << z;
  // For large z, log Phi = -Phi(-z): no rounding to zero.
  EXPECT_LE(std::abs(log_normal_cdf(10.0) / -7.6198530241605260e-24 - 1.0), 1e-12);
}

/// log of the integral of t N(best + t; mean, stddev^2) over t > 0, by Simpson's rule.
double integrated_log_ei(double mean, double stddev, double best) {
  constexpr int kIntervals = 20000;
  const long double width = (std::max(mean - best, 0.0) + 14.0 * stddev) / kIntervals;
  long double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const long double t = width * i;
    const long double z = (best + t - mean) / stddev;
    const int weight = i == 0 || i == kIntervals ? 1 : (i % 2 == 1 ? 4 : 2);
    sum += weight * t * std::exp(-z * z / 2);
  }
  return static_cast<double>(std::log(sum * width / 3 / (stddev * std::sqrt(2 * std::acos(-1.0L)))));
}

TEST(LogExpectedImprovement, EqualsTheIntegral) {
  Prediction prediction;
  prediction.mean = Eigen::VectorXd(5);
  prediction.mean << 3.0, 1.0, 0.4, -2.0, -20.0;
  prediction.variance = Eigen::VectorXd(5);
  prediction.variance << 0.25, 4.0, 1.0, 0.09, 9.0;
  const double best = 1.0;
  const Eigen::VectorXd got = log_expected_improvement(prediction, best);
  for (Eigen::Index i = 0; i < 5; ++i) {
    const double want = integrated_log_ei(prediction.mean[i], std::sqrt(prediction.variance[i]), best);
    EXPECT_LE(error(got[i], want), 1e-10) << i;
  }
}

TEST(LogExpectedImprovement, OfACertainGainIsItsLogarithmAndOrdersCertainLosses) {
  Prediction prediction;
  prediction.mean = Eigen::Vector3d(1.5, 0.5, 0.4);
  prediction.variance = Eigen::Vector3d::Zero();
  const Eigen::VectorXd got = log_expected_improvement(prediction, 1.0);
  EXPECT_LE(std::abs(got[0] - std::log(0.5)), 1e-11);
  EXPECT_TRUE(got.allFinite());
  EXPECT_GT(got[1], got[2]);
}

}  // namespace
}  // namespace krigtune
