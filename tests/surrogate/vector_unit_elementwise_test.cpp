#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <functional>
#include <limits>

#include "krigtune/rng.h"
#include "krigtune/surrogate/acquisition.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::vector_unit_elementwise_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Real = long double;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

class ElementwiseVectorUnit : public testing::TestWithParam<const surrogate::VectorUnit*> {
 protected:
  const surrogate::VectorUnit& unit() const { return *GetParam(); }
  Rng rng{61, 0};
  MatrixXd random_matrix(Index rows, Index cols) {
    return MatrixXd::NullaryExpr(rows, cols, [this] { return rng.normal(); });
  }
  /// Few different numbers, like categories.
  MatrixXd random_indices(Index rows, Index cols) {
    return MatrixXd::NullaryExpr(rows, cols, [this] { return static_cast<double>(rng.below(3)); });
  }
};

std::string name_of(const testing::TestParamInfo<const surrogate::VectorUnit*>& info) { return info.param->name; }

INSTANTIATE_TEST_SUITE_P(Units, ElementwiseVectorUnit, testing::ValuesIn(surrogate::available_vector_units()), name_of);

/// 0, and values from 1e-30 to where exp(-u) is 1e-300. Their number is not a multiple of a vector register.
VectorXd squared_distances() {
  VectorXd r2(1003);
  r2[0] = 0.0;
  for (Index i = 1; i < r2.size(); ++i) r2[i] = std::pow(10.0, -30.0 + 0.0345 * static_cast<double>(i));
  return r2;
}

struct Correlation {
  surrogate::VectorUnit::Profile profile;
  std::function<Real(Real r2)> exponent;  ///< the relative error grows with it
  std::function<Real(Real r2)> value;
  std::function<Real(Real r2)> slope;
};

void expect_correlation(const Correlation& want) {
  const VectorXd r2 = squared_distances();
  VectorXd value = r2;
  want.profile.correlation(value.size(), value.data());
  VectorXd same = r2;
  VectorXd slope(r2.size());
  want.profile.with_slope(r2.size(), same.data(), slope.data());
  EXPECT_EQ(value, same);
  for (Index i = 0; i < r2.size(); ++i) {
    const double exponent = static_cast<double>(want.exponent(r2[i]));
    if (exponent > 690.0) continue;
    // The exponent results from two operations, each exact to half a unit in the last place; exp and the rest add a few
    // units.
    const double tolerance = (10.0 + 2.0 * exponent) * kEpsilon;
    EXPECT_LE(std::abs(value[i] / want.value(r2[i]) - 1.0L), tolerance) << r2[i];
    EXPECT_LE(std::abs(slope[i] / want.slope(r2[i]) - 1.0L), tolerance) << r2[i];
  }
}

TEST_P(ElementwiseVectorUnit, HasTheMatern52Correlation) {
  const auto u = [](Real r2) { return std::sqrt(5 * r2); };
  expect_correlation({unit().matern52(), u, [u](Real r2) { return (1 + u(r2) + 5 * r2 / 3) * std::exp(-u(r2)); },
                      [u](Real r2) { return -(1 + u(r2)) * std::exp(-u(r2)) * 5 / 6; }});
}

TEST_P(ElementwiseVectorUnit, HasTheMatern32Correlation) {
  const auto u = [](Real r2) { return std::sqrt(3 * r2); };
  expect_correlation({unit().matern32(), u, [u](Real r2) { return (1 + u(r2)) * std::exp(-u(r2)); },
                      [u](Real r2) { return -std::exp(-u(r2)) * 3 / 2; }});
}

TEST_P(ElementwiseVectorUnit, HasTheSquaredExponentialCorrelation) {
  expect_correlation({unit().squared_exponential(), [](Real r2) { return r2 / 2; },
                      [](Real r2) { return std::exp(-r2 / 2); }, [](Real r2) { return -std::exp(-r2 / 2) / 2; }});
}

TEST_P(ElementwiseVectorUnit, HasCorrelationsThatVanishFarAway) {
  for (const auto& profile : {unit().matern52(), unit().matern32(), unit().squared_exponential()}) {
    double r2 = 1e8;
    double slope = 1.0;
    profile.with_slope(1, &r2, &slope);
    EXPECT_LE(std::abs(r2), 1e-290);
    EXPECT_LE(std::abs(slope), 1e-290);
  }
}

TEST_P(ElementwiseVectorUnit, GivesANumberTheSameResultWhereverItStands) {
  const VectorXd r2 = squared_distances();
  VectorXd together = r2;
  unit().matern52().correlation(together.size(), together.data());
  VectorXd logarithms(r2.size());
  unit().log_h(r2.size(), r2.data(), logarithms.data());
  for (Index i = 0; i < r2.size(); ++i) {
    double alone = r2[i];
    unit().matern52().correlation(1, &alone);
    EXPECT_EQ(alone, together[i]);
    unit().log_h(1, &r2[i], &alone);
    EXPECT_EQ(alone, logarithms[i]);
  }
}

TEST_P(ElementwiseVectorUnit, AddsSquaresAndMismatches) {
  for (const Index n : {1, 8, 37}) {
    const MatrixXd x = random_matrix(n + 2, 5);  // n of its rows are used
    const MatrixXd y = random_matrix(3, 5);
    const MatrixXd a = random_indices(n + 2, 5);
    const MatrixXd b = random_indices(3, 5);
    const VectorXd weights = random_matrix(5, 1);
    VectorXd sums = VectorXd::Ones(n);
    unit().add_squares(n, 5, x.data() + 2, n + 2, y.data() + 1, 3, sums.data());
    unit().add_mismatches(n, 5, a.data() + 2, n + 2, b.data() + 1, 3, weights.data(), sums.data());
    for (Index i = 0; i < n; ++i) {
      Real want = 1;
      for (Index p = 0; p < 5; ++p) {
        want += std::pow(static_cast<Real>(x(i + 2, p)) - y(1, p), 2);
        if (a(i + 2, p) != b(1, p)) want += weights[p];
      }
      EXPECT_LE(std::abs(sums[i] - want), 100.0 * kEpsilon);  // terms up to 20
    }
  }
}

TEST_P(ElementwiseVectorUnit, SumsSquaresAndMismatches) {
  for (const Index n : {1, 8, 37}) {
    const MatrixXd x = random_matrix(n, 5);
    const VectorXd y = random_matrix(5, 1);
    const MatrixXd a = random_indices(n, 5);
    const VectorXd b = random_indices(5, 1);
    const VectorXd weights = random_matrix(n, 1);
    VectorXd squares = VectorXd::Ones(5);
    VectorXd mismatches = VectorXd::Ones(5);
    unit().sum_squares(n, 5, x.data(), n, y.data(), 1, weights.data(), squares.data());
    unit().sum_mismatches(n, 5, a.data(), n, b.data(), 1, weights.data(), mismatches.data());
    for (Index p = 0; p < 5; ++p) {
      Real square = 1;
      Real mismatch = 1;
      for (Index i = 0; i < n; ++i) {
        square += weights[i] * std::pow(static_cast<Real>(x(i, p)) - y[p], 2);
        if (a(i, p) != b[p]) mismatch += weights[i];
      }
      EXPECT_LE(std::abs(squares[p] - square), 1000.0 * kEpsilon);  // 37 terms up to 20
      EXPECT_LE(std::abs(mismatches[p] - mismatch), 100.0 * kEpsilon);
    }
  }
}

/// The scalar functions have their own tests against mpmath.
TEST_P(ElementwiseVectorUnit, HasTheTailsOfTheScalarFunctions) {
  VectorXd u(8001);
  for (Index i = 0; i < u.size(); ++i) u[i] = 0.01 * static_cast<double>(i - 4000);
  u[0] = -1e100;
  u[8000] = 1e100;
  VectorXd improvement(u.size());
  VectorXd probability(u.size());
  unit().log_h(u.size(), u.data(), improvement.data());
  unit().log_normal_cdf(u.size(), u.data(), probability.data());
  for (Index i = 0; i < u.size(); ++i) {
    EXPECT_LE(std::abs(improvement[i] - surrogate::log_h(u[i])),
              10.0 * kEpsilon * (1.0 + std::abs(surrogate::log_h(u[i]))))
        << u[i];
    EXPECT_LE(std::abs(probability[i] - surrogate::log_normal_cdf(u[i])),
              10.0 * kEpsilon * (1.0 + std::abs(surrogate::log_normal_cdf(u[i]))))
        << u[i];
  }
}

TEST_P(ElementwiseVectorUnit, LetsNoNanPass) {
  double value = std::numeric_limits<double>::quiet_NaN();
  double result = 0.0;
  unit().log_h(1, &value, &result);
  EXPECT_TRUE(std::isnan(result));
  unit().log_normal_cdf(1, &value, &result);
  EXPECT_TRUE(std::isnan(result));
  for (const auto& profile : {unit().matern52(), unit().matern32(), unit().squared_exponential()}) {
    double r2 = value;
    profile.correlation(1, &r2);
    EXPECT_TRUE(std::isnan(r2));
  }
}

}  // namespace krigtune::vector_unit_elementwise_test
