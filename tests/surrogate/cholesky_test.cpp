#include "cholesky.h"

#include <gtest/gtest.h>

#include <limits>

#include "krigtune/surrogate/kernel.h"
#include "surrogate/reference_gp.h"

namespace krigtune::cholesky_test {

using Eigen::MatrixXd;

MatrixXd covariance_of(const surrogate::Points& points) {
  MatrixXd k = surrogate::make_kernel(surrogate::KernelKind::kMatern52)->gram(points, points, Eigen::VectorXd::Zero(3));
  return k;
}

TEST(Cholesky, NeedsNoJitterForDistinctPoints) {
  Rng rng(41, 0);
  const MatrixXd k = covariance_of(reference::random_points(rng, 10, 2, 0));
  const auto factor = surrogate::cholesky_with_jitter(k);
  ASSERT_TRUE(factor);
  EXPECT_EQ(factor->jitter, 0.0);
  EXPECT_LE((factor->lower * factor->lower.transpose() - k).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(Cholesky, TakesTheSmallestJitterThatMendsRepeatedPoints) {
  Rng rng(42, 0);
  surrogate::Points points = reference::random_points(rng, 30, 2, 0);
  points.append(points);
  points.append(points);
  const MatrixXd k = covariance_of(points);
  // Make the matrix indefinite by more than the rounding errors, so that the first jitter must be needed.
  const MatrixXd indefinite = k - 1e-11 * MatrixXd::Identity(k.rows(), k.cols());
  const auto factor = surrogate::cholesky_with_jitter(indefinite);
  ASSERT_TRUE(factor);
  EXPECT_LE(std::abs(factor->jitter - 1e-10), 1e-16);
  EXPECT_LE((factor->lower * factor->lower.transpose() - k).cwiseAbs().maxCoeff(), 2e-10);
}

TEST(Cholesky, RefusesWhatIsNoCovariance) {
  EXPECT_FALSE(surrogate::cholesky_with_jitter(Eigen::Vector2d(1.0, -1.0).asDiagonal().toDenseMatrix()));
  EXPECT_FALSE(surrogate::cholesky_with_jitter(MatrixXd::Constant(2, 2, std::numeric_limits<double>::quiet_NaN())));
  MatrixXd hidden = MatrixXd::Identity(3, 3);
  hidden(2, 0) = hidden(0, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(surrogate::cholesky_with_jitter(hidden));
}

TEST(Cholesky, ExtendedByABlockIsTheFactorOfTheWhole) {
  Rng rng(43, 0);
  const MatrixXd k = covariance_of(reference::random_points(rng, 12, 2, 0));
  const auto head = surrogate::cholesky_with_jitter(k.topLeftCorner(8, 8));
  const auto whole = surrogate::cholesky_with_jitter(k);
  ASSERT_TRUE(head && whole);
  const auto extended = surrogate::extend_cholesky(head->lower, k.topRightCorner(8, 4), k.bottomRightCorner(4, 4));
  ASSERT_TRUE(extended);
  // The pivots of the corner are small differences, of which ten digits are correct.
  EXPECT_LE((*extended - whole->lower).cwiseAbs().maxCoeff(), 1e-10);
}

}  // namespace krigtune::cholesky_test
