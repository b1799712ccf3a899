// Test problems of the literature in the unit cube (problems.py has them for peers written in Python):
//   Branin, Hartmann 3 and 6: Dixon & Szegoe 1978; Ackley 1987; the constrained one: Gramacy et al. 2016, "Modeling an
//   augmented Lagrangian for blackbox constrained optimization".
// mixed_bowls is our own: in each of four categories it has a valley that turns with a grid column, with ripples along
// x.
#include "problems.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace krigtune::sanity {
namespace {

using Eigen::Index;
using std::numbers::pi;

template <std::size_t kDims>
using Table = std::array<std::array<double, kDims>, 4>;

constexpr std::array<double, 4> kAlpha{1.0, 1.2, 3.0, 3.2};
constexpr Table<6> kA6{
    {{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}}};
constexpr Table<6> kP6{{{1312, 1696, 5569, 124, 8283, 5886},
                        {2329, 4135, 8307, 3736, 1004, 9991},
                        {2348, 1451, 3522, 2883, 3047, 6650},
                        {4047, 8828, 8732, 5743, 1091, 381}}};
constexpr Table<3> kA3{{{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}}};
constexpr Table<3> kP3{{{3689, 1170, 2673}, {4699, 4387, 7470}, {1091, 8732, 5547}, {381, 5743, 8828}}};

template <std::size_t kDims>
double hartmann(const surrogate::Points& point, const Table<kDims>& a, const Table<kDims>& p) {
  double sum = 0.0;
  for (std::size_t row = 0; row < 4; ++row) {
    double exponent = 0.0;
    for (std::size_t i = 0; i < kDims; ++i) {
      const double from_peak = point.ordered(0, static_cast<Index>(i)) - 1e-4 * p[row][i];
      exponent += a[row][i] * from_peak * from_peak;
    }
    sum += kAlpha[row] * std::exp(-exponent);
  }
  return -sum;
}

surrogate::Evaluation branin(const surrogate::Points& point) {
  const double x = -5.0 + 15.0 * point.ordered(0, 0);
  const double y = 15.0 * point.ordered(0, 1);
  const double bowl = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
  return {point, bowl * bowl + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0, {}};
}

surrogate::Evaluation hartmann6(const surrogate::Points& point) { return {point, hartmann(point, kA6, kP6), {}}; }

surrogate::Evaluation hartmann3_failing(const surrogate::Points& point) {
  if (point.ordered(0, 0) + point.ordered(0, 1) > 1.2) return {point, {}, {}};
  return {point, hartmann(point, kA3, kP3), {}};
}

surrogate::Evaluation ackley4(const surrogate::Points& point) {
  const Eigen::RowVector4d optimum(0.6, -1.4, 2.2, 0.4);
  const Eigen::RowVector4d x = (-5.0 + 10.0 * point.ordered.row(0).array()).matrix() - optimum;
  const double root = std::sqrt(x.squaredNorm() / 4.0);
  const double waves = (2.0 * pi * x.array()).cos().sum() / 4.0;
  return {point, -20.0 * std::exp(-0.2 * root) - std::exp(waves) + 20.0 + std::numbers::e, {}};
}

surrogate::Evaluation mixed_bowls(const surrogate::Points& point) {
  constexpr std::array<double, 4> kOffset{0.3, 0.15, 0.0, 0.5};
  constexpr std::array<double, 4> kX{0.2, 0.8, 0.35, 0.6};
  constexpr std::array<double, 4> kY{0.7, 0.3, 0.55, 0.9};
  constexpr std::array<double, 4> kG{2.0 / 7.0, 6.0 / 7.0, 5.0 / 7.0, 1.0 / 7.0};
  const auto c = static_cast<std::size_t>(point.categories(0, 0));
  const double x = point.ordered(0, 0) - kX[c];
  const double g = point.ordered(0, 2) - kG[c];
  const double valley = point.ordered(0, 1) - kY[c] - 0.4 * g;
  return {
      point, kOffset[c] + 4.0 * x * x + 3.0 * valley * valley + 2.0 * g * g + 0.3 * (1.0 - std::cos(4.0 * pi * x)), {}};
}

// Ackley's function of two continuous columns, a grid of eleven whole numbers from -5 to 5, and two categories of four
// levels each. A category counts as a coordinate without order: 0 at its best level, otherwise 1, 2 or 3 away from it.
surrogate::Evaluation mixed_ackley(const surrogate::Points& point) {
  constexpr std::array<double, 4> kFirst{2.0, 0.0, 3.0, 1.0};
  constexpr std::array<double, 4> kSecond{1.0, 3.0, 2.0, 0.0};
  Eigen::Vector<double, 5> x;
  x << -5.0 + 10.0 * point.ordered(0, 0) - 0.6, -5.0 + 10.0 * point.ordered(0, 1) + 1.4,
      std::round(-5.0 + 10.0 * point.ordered(0, 2)) - 2.0, kFirst[static_cast<std::size_t>(point.categories(0, 0))],
      kSecond[static_cast<std::size_t>(point.categories(0, 1))];
  const double waves = (2.0 * pi * x.array()).cos().mean();
  return {
      point, -20.0 * std::exp(-0.2 * std::sqrt(x.squaredNorm() / 5.0)) - std::exp(waves) + 20.0 + std::numbers::e, {}};
}

surrogate::Evaluation gramacy(const surrogate::Points& point) {
  const double x = point.ordered(0, 0);
  const double y = point.ordered(0, 1);
  const double wavy = 1.5 - x - 2.0 * y - 0.5 * std::sin(2.0 * pi * (x * x - 2.0 * y));
  return {point, x + y, Eigen::Vector2d(wavy, x * x + y * y - 1.5)};
}

}  // namespace

surrogate::MixedSpace Problem::space() const {
  surrogate::MixedSpace result;
  for (const int count : levels) {
    surrogate::OrderedDimension dimension;
    for (int k = 0; k < count; ++k) dimension.values.push_back(static_cast<double>(k) / (count - 1));
    result.ordered.push_back(dimension);
  }
  result.categories = categories;
  return result;
}

std::vector<Problem> problems() {
  return {
      {"branin", {0, 0}, {}, 25, 0.39788735772973816, branin},
      {"hartmann6", {0, 0, 0, 0, 0, 0}, {}, 60, -3.3223680114155147, hartmann6},
      {"ackley4", {0, 0, 0, 0}, {}, 50, 0.0, ackley4},
      {"mixed_bowls", {0, 0, 8}, {4}, 40, 0.0, mixed_bowls},
      {"mixed_ackley", {0, 0, 11}, {4, 4}, 50, 0.0, mixed_ackley},
      {"gramacy", {0, 0}, {}, 40, 0.5997880520100676, gramacy},
      {"hartmann3_failing", {0, 0, 0}, {}, 40, -3.8627797873326624, hartmann3_failing},
  };
}

}  // namespace krigtune::sanity
