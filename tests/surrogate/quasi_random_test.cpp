#include "quasi_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace krigtune::quasi_random_test {

using Eigen::Index;
using Eigen::MatrixXd;

TEST(HaltonSequence, PutsOnePointIntoEachPartOfItsBase) {
  Rng rng(1, 0);
  const MatrixXd points = surrogate::HaltonSequence(4, rng).next(2401);
  const Index kParts[] = {1024, 729, 625, 2401};  // powers of 2, 3, 5, 7
  for (Index j = 0; j < 4; ++j) {
    std::vector<int> counts(static_cast<std::size_t>(kParts[j]), 0);
    for (Index i = 0; i < kParts[j]; ++i)
      ++counts[static_cast<std::size_t>(points(i, j) * static_cast<double>(kParts[j]))];
    for (const int count : counts) EXPECT_EQ(count, 1);
  }
}

TEST(HaltonSequence, IsMoreEvenThanChance) {
  // The mean of a product of three smooth functions whose integrals are 1. Random points would be off by 2 / sqrt(4096)
  // = 3 %.
  Rng rng(2, 0);
  const MatrixXd points = surrogate::HaltonSequence(3, rng).next(4096);
  const Eigen::ArrayXd product = (1.5707963267948966 * (3.141592653589793 * points.array()).sin()).rowwise().prod();
  EXPECT_LE(std::abs(product.mean() - 1.0), 2e-3);
}

TEST(HaltonSequence, HasNoCorrelatedColumnsAmongLargePrimes) {
  Rng rng(3, 0);
  const MatrixXd points = surrogate::HaltonSequence(30, rng).next(400);
  const MatrixXd centred = points.rowwise() - points.colwise().mean();
  for (Index j = 0; j < 30; ++j)
    for (Index k = 0; k < j; ++k) {
      const double correlation = centred.col(j).dot(centred.col(k)) / (centred.col(j).norm() * centred.col(k).norm());
      EXPECT_LE(std::abs(correlation), 0.25)
          << j << ", " << k;  // random points: 0.05, and the largest of 435 about 0.17
    }
}

TEST(HaltonSequence, GoesOnWhereItStoppedAndStaysInside) {
  Rng first(4, 0);
  Rng second(4, 0);
  Rng third(5, 0);
  const MatrixXd whole = surrogate::HaltonSequence(5, first).next(100);
  surrogate::HaltonSequence sequence(5, second);
  EXPECT_EQ(sequence.next(40), whole.topRows(40));
  EXPECT_EQ(sequence.next(60), whole.bottomRows(60));
  EXPECT_NE(surrogate::HaltonSequence(5, third).next(100), whole);
  EXPECT_GT(whole.minCoeff(), 0.0);
  EXPECT_LT(whole.maxCoeff(), 1.0);
}

}  // namespace krigtune::quasi_random_test
