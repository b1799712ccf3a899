// Against mpmath's ncdf with 30 digits.
#include "core/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace krigtune::statistics_test {

TEST(NormalCdf, HasTheLiteraturesValuesInBothTails) {
  const std::vector<std::pair<double, double>> known = {
      {0.0, 0.5},
      {1.0, 0.841344746068542949},
      {-1.0, 0.158655253931457051},
      {kNormal975, 0.975},
      {-8.0, 6.22096057427178412e-16},
      {-10.0, 7.61985302416052606e-24},
      {-37.0, 5.72557122252457683e-300},
      {8.5, 1.0},
  };
  for (const auto& [z, probability] : known) {
    // The rounding of z / sqrt(2) is multiplied by the logarithm's slope, -z, and by z itself.
    EXPECT_LE(std::abs(normal_cdf(z) - probability), 4e-16 * (10.0 + z * z) * probability) << z;
  }
}

// A normal distribution is symmetric, and its density is the derivative.
TEST(NormalCdf, IsTheIntegralOfTheDensity) {
  constexpr double kStep = 1e-5;
  for (double z = -5.0; z <= 5.0; z += 0.25) {
    EXPECT_NEAR(normal_cdf(z) + normal_cdf(-z), 1.0, 1e-15);
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
    const double slope = (normal_cdf(z + kStep) - normal_cdf(z - kStep)) / (2.0 * kStep);
    EXPECT_NEAR(slope, density, 1e-9) << z;  // the difference has an error of step^2, and 1e-16 / step
  }
}

}  // namespace krigtune::statistics_test
