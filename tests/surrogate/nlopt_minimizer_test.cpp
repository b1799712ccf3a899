#include "nlopt_minimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace krigtune::nlopt_minimizer_test {

using Eigen::VectorXd;
using Termination = surrogate::FitReport::Termination;

VectorXd vector2(double x, double y) { return Eigen::Vector2d(x, y); }

/// Minimum 0 at (1, 1); Rosenbrock 1960.
double rosenbrock(const VectorXd& x, VectorXd& gradient) {
  const double a = 1.0 - x[0];
  const double b = x[1] - x[0] * x[0];
  gradient = vector2(-2.0 * a - 400.0 * b * x[0], 200.0 * b);
  return a * a + 100.0 * b * b;
}

TEST(MinimizeInBox, FindsAnInteriorMinimum) {
  const surrogate::Minimum found =
      surrogate::minimize_in_box(rosenbrock, vector2(-1.2, 1.0), vector2(-5, -5), vector2(5, 5), {1e-12, 500});
  EXPECT_EQ(found.termination, Termination::kConverged) << found.message;
  EXPECT_LE((found.point - vector2(1.0, 1.0)).norm(), 1e-4);
}

TEST(MinimizeInBox, StaysInTheBoxAndFindsItsEdge) {
  const VectorXd upper = vector2(0.5, 2.0);
  // A start outside is moved inside.
  const surrogate::Minimum found = surrogate::minimize_in_box(rosenbrock, vector2(9.0, 9.0), vector2(-2, -2), upper);
  EXPECT_LE((found.point - vector2(0.5, 0.25)).norm(), 1e-3) << found.message;
  EXPECT_TRUE((found.point.array() <= upper.array()).all());
}

TEST(MinimizeInBox, ReportsTheEvaluationLimit) {
  const surrogate::Minimum found =
      surrogate::minimize_in_box(rosenbrock, vector2(-1.2, 1.0), vector2(-5, -5), vector2(5, 5), {1e-12, 5});
  EXPECT_EQ(found.termination, Termination::kEvaluationLimit);
  EXPECT_LE(found.evaluations, 6);
  EXPECT_LE(found.value, 24.2 + 1e-9);  // no worse than the start
}

TEST(MinimizeInBox, GoesOnWithSlsqpWhereLbfgsFails) {
  int calls = 0;
  const surrogate::DifferentiableFunction stumbles = [&calls](const VectorXd& x, VectorXd& gradient) {
    const double value = rosenbrock(x, gradient);
    return ++calls == 3 ? std::nan("") : value;
  };
  const surrogate::Minimum found =
      surrogate::minimize_in_box(stumbles, vector2(-1.2, 1.0), vector2(-5, -5), vector2(5, 5), {1e-12, 500});
  EXPECT_EQ(found.termination, Termination::kFallback) << found.message;
  EXPECT_LE((found.point - vector2(1.0, 1.0)).norm(), 1e-3);
}

TEST(MinimizeInBox, KeepsTheBestPointSeenWhenBothFail) {
  int calls = 0;
  const surrogate::DifferentiableFunction breaks = [&calls](const VectorXd& x, VectorXd& gradient) {
    const double value = rosenbrock(x, gradient);
    return ++calls > 4 ? std::nan("") : value;
  };
  const surrogate::Minimum found =
      surrogate::minimize_in_box(breaks, vector2(-1.2, 1.0), vector2(-5, -5), vector2(5, 5));
  EXPECT_EQ(found.termination, Termination::kFailed);
  ASSERT_EQ(found.point.size(), 2);
  VectorXd unused;
  EXPECT_LE(std::abs(rosenbrock(found.point, unused) - found.value), 0.0);
  EXPECT_LE(found.value, 24.2 + 1e-9);
}

TEST(MinimizeInBox, HasNoPointWhereNothingIsFinite) {
  const surrogate::DifferentiableFunction never = [](const VectorXd&, VectorXd&) { return std::nan(""); };
  const surrogate::Minimum found = surrogate::minimize_in_box(never, vector2(0, 0), vector2(-1, -1), vector2(1, 1));
  EXPECT_EQ(found.termination, Termination::kFailed);
  EXPECT_EQ(found.point.size(), 0);
}

TEST(MinimizeInBox, LetsExceptionsOfTheFunctionThrough) {
  const surrogate::DifferentiableFunction throws = [](const VectorXd&, VectorXd&) -> double {
    throw std::out_of_range("mine");
  };
  EXPECT_THROW(surrogate::minimize_in_box(throws, vector2(0, 0), vector2(-1, -1), vector2(1, 1)), std::out_of_range);
}

}  // namespace krigtune::nlopt_minimizer_test
