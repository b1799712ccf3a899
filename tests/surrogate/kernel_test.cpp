#include "krigtune/surrogate/kernel.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "surrogate/reference_gp.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd random_vector(Rng& rng, Index size) {
  return VectorXd::NullaryExpr(size, [&rng](Index) { return rng.normal(); });
}

void expect_gradient_is_the_difference(const Kernel& kernel, const Points& x, const VectorXd& theta, Rng& rng) {
  // Weights that are not symmetric, as the contract does not ask for it.
  const MatrixXd weights = MatrixXd::NullaryExpr(x.size(), x.size(), [&rng](Index, Index) { return rng.normal(); });
  const auto sum = [&](const VectorXd& at) { return (weights.array() * kernel.gram(x, x, at).array()).sum(); };
  const VectorXd gradient = kernel.weighted_gradient(x, theta, weights);
  ASSERT_EQ(gradient.size(), theta.size());
  // Central differences: truncation h^2 and rounding 1e-16 / h meet at about h = 1e-5, where both are near 1e-10.
  constexpr double kStep = 1e-5;
  for (Index p = 0; p < theta.size(); ++p) {
    VectorXd up = theta;
    VectorXd down = theta;
    up[p] += kStep;
    down[p] -= kStep;
    const double difference = (sum(up) - sum(down)) / (2.0 * kStep);
    EXPECT_LE(std::abs(gradient[p] - difference), 1e-7 * (1.0 + weights.cwiseAbs().sum() / 10.0)) << "parameter " << p;
  }
}

/// What every kernel must hold to; a new one adds one line.
void expect_kernel_contract(const Kernel& kernel, int ordered, int categories) {
  SCOPED_TRACE("ordered " + std::to_string(ordered) + ", categories " + std::to_string(categories));
  Rng rng(11, static_cast<std::uint64_t>(10 * ordered + categories));
  Points x = reference::random_points(rng, 15, ordered, categories);
  x.append(x.slice(3, 2));  // repeated points
  const Points y = reference::random_points(rng, 6, ordered, categories);
  const auto count = static_cast<Index>(kernel.hyperparameters(ordered, categories).size());
  ASSERT_GE(count, 1);
  const VectorXd theta = 0.5 * random_vector(rng, count);

  const MatrixXd k = kernel.gram(x, x, theta);
  ASSERT_EQ(k.rows(), x.size());
  EXPECT_LE((k - k.transpose()).cwiseAbs().maxCoeff(), 0.0);
  EXPECT_LE((kernel.gram(x, y, theta) - kernel.gram(y, x, theta).transpose()).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_LE((k.diagonal() - kernel.diagonal(x, theta)).cwiseAbs().maxCoeff(), 1e-15 * k.diagonal().maxCoeff());
  // Eigenvalues of a semi-definite matrix come out down to -n eps times the largest.
  const VectorXd eigenvalues = Eigen::SelfAdjointEigenSolver<MatrixXd>(k, Eigen::EigenvaluesOnly).eigenvalues();
  EXPECT_GE(eigenvalues.minCoeff(), -1e-14 * eigenvalues.maxCoeff());
  expect_gradient_is_the_difference(kernel, x, theta, rng);
}

TEST(Matern52, MeetsTheKernelContract) {
  for (const int ordered : {1, 3, 8}) expect_kernel_contract(*make_kernel(KernelKind::kMatern52), ordered, 0);
  expect_kernel_contract(*make_kernel(KernelKind::kMatern52), 2, 2);
  expect_kernel_contract(*make_kernel(KernelKind::kMatern52), 0, 3);
}

TEST(Matern52, HasTheTextbookValueAtUnitDistance) {  // (1 + sqrt 5 + 5/3) exp(-sqrt 5)
  const auto kernel = make_kernel(KernelKind::kMatern52);
  const Points x = Points::zero(1, 1, 0);
  Points y = x;
  y.ordered(0, 0) = 1.0;
  EXPECT_NEAR(kernel->gram(x, y, VectorXd::Zero(2))(0, 0), 0.523994108831820, 1e-14);
}

TEST(Matern52, TakesADifferentCategoryForAUnitOfDistance) {
  const auto kernel = make_kernel(KernelKind::kMatern52);
  Points x = Points::zero(1, 1, 1);
  Points y = x;
  y.categories(0, 0) = 5;  // how far apart the indices are must not matter
  EXPECT_NEAR(kernel->gram(x, y, VectorXd::Zero(3))(0, 0), 0.523994108831820, 1e-14);
  y.categories(0, 0) = 0;
  EXPECT_NEAR(kernel->gram(x, y, VectorXd::Zero(3))(0, 0), 1.0, 1e-15);
}

TEST(Matern52, AgreesWithTheFormulaInLongDouble) {
  Rng rng(12, 0);
  const auto kernel = make_kernel(KernelKind::kMatern52);
  const Points x = reference::random_points(rng, 9, 3, 2);
  const Points y = reference::random_points(rng, 4, 3, 2);
  const VectorXd theta = random_vector(rng, 6);
  const MatrixXd k = kernel->gram(x, y, theta);
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 4; ++j)
      EXPECT_NEAR(k(i, j), static_cast<double>(reference::matern52(x, i, y, j, theta)), 1e-14 * std::exp(theta[5]));
}

TEST(Points, AppendAndSliceKeepRowsTogether) {
  Rng rng(13, 0);
  const Points all = reference::random_points(rng, 7, 2, 1);
  Points joined;
  joined.append(all.slice(0, 3));
  joined.append(all.slice(3, 4));
  EXPECT_EQ(joined.ordered, all.ordered);
  EXPECT_EQ(joined.categories, all.categories);
}

}  // namespace
}  // namespace krigtune
