#include "krigtune/surrogate/kernel.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "surrogate/kernel_specs.h"

namespace krigtune::kernel_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Role = surrogate::Hyperparameter::Role;

// Central differences: truncation h^2 and rounding 1e-16 / h balance at about h = 1e-5, where both are near 1e-10.
constexpr double kStep = 1e-5;

VectorXd random_vector(Rng& rng, Index size) {
  return VectorXd::NullaryExpr(size, [&rng](Index) { return rng.normal(); });
}

/// d function / d at[i] for each i.
VectorXd differences(const VectorXd& at, const auto& function) {
  VectorXd gradient(at.size());
  for (Index i = 0; i < at.size(); ++i) {
    VectorXd up = at;
    VectorXd down = at;
    up[i] += kStep;
    down[i] -= kStep;
    gradient[i] = (function(up) - function(down)) / (2.0 * kStep);
  }
  return gradient;
}

void expect_near(const VectorXd& found, const VectorXd& expected, double scale) {
  ASSERT_EQ(found.size(), expected.size());
  for (Index i = 0; i < found.size(); ++i) EXPECT_LE(std::abs(found[i] - expected[i]), 1e-8 * scale) << "entry " << i;
}

void expect_gradient_is_the_difference(const surrogate::Kernel& kernel, const surrogate::Points& x,
                                       const VectorXd& theta, Rng& rng) {
  // The weights are not symmetric, because the contract does not require it.
  const MatrixXd weights = MatrixXd::NullaryExpr(x.size(), x.size(), [&rng](Index, Index) { return rng.normal(); });
  const auto sum = [&](const VectorXd& at) { return weights.cwiseProduct(kernel.gram(x, x, at)).sum(); };
  const double scale = weights.cwiseProduct(kernel.gram(x, x, theta)).cwiseAbs().sum();
  expect_near(kernel.weighted_gradient(x, theta, weights), differences(theta, sum), scale);
}

void expect_input_gradient_is_the_difference(const surrogate::Kernel& kernel, const surrogate::Points& z,
                                             const surrogate::Points& x, const VectorXd& theta, Rng& rng) {
  const VectorXd weights = random_vector(rng, x.size());
  const auto sum = [&](const VectorXd& ordered) {
    surrogate::Points moved = z;
    moved.ordered.row(0) = ordered.transpose();
    return kernel.gram(moved, x, theta).row(0).dot(weights);
  };
  // A value of the kernel is at most its diagonal, and a derivative with respect to x_i at most about that over the
  // lengthscale.
  const double scale = weights.cwiseAbs().sum() * kernel.diagonal(x, theta).maxCoeff() * 10.0;
  expect_near(kernel.input_gradient(z, x, theta, weights), differences(z.ordered.row(0).transpose(), sum), scale);
}

void expect_kernel_contract(const KernelCase& specimen) {
  SCOPED_TRACE(specimen.name);
  const auto kernel = surrogate::make_kernel(specimen.spec);
  Rng rng(11, static_cast<std::uint64_t>(10 * specimen.ordered + specimen.categories));
  surrogate::Points x = specimen.random_points(rng, 15);
  x.append(x.slice(3, 2));  // repeated points
  const surrogate::Points y = specimen.random_points(rng, 6);

  const std::vector<surrogate::Hyperparameter> parameters =
      kernel->hyperparameters(specimen.ordered, specimen.categories);
  std::string roles;
  for (const surrogate::Hyperparameter& parameter : parameters)
    roles += parameter.role == Role::kLengthscale ? 'l' : 's';
  EXPECT_EQ(roles, specimen.roles);
  const VectorXd theta = 0.5 * random_vector(rng, static_cast<Index>(parameters.size()));

  const MatrixXd k = kernel->gram(x, x, theta);
  ASSERT_EQ(k.rows(), x.size());
  const double largest = k.diagonal().maxCoeff();
  EXPECT_LE((k - k.transpose()).cwiseAbs().maxCoeff(), 0.0);
  EXPECT_LE((kernel->gram(x, surrogate::Points(x), theta) - k).cwiseAbs().maxCoeff(), 1e-15 * largest);
  const MatrixXd cross = kernel->gram(x, y, theta);
  ASSERT_EQ(cross.cols(), y.size());
  EXPECT_LE((cross - kernel->gram(y, x, theta).transpose()).cwiseAbs().maxCoeff(), 1e-15 * largest);
  EXPECT_LE((k.diagonal() - kernel->diagonal(x, theta)).cwiseAbs().maxCoeff(), 1e-15 * largest);
  // Computed eigenvalues of a semi-definite matrix can be as low as -n eps times the largest.
  const VectorXd eigenvalues = Eigen::SelfAdjointEigenSolver<MatrixXd>(k, Eigen::EigenvaluesOnly).eigenvalues();
  EXPECT_GE(eigenvalues.minCoeff(), -1e-14 * eigenvalues.maxCoeff());
  expect_gradient_is_the_difference(*kernel, x, theta, rng);
  expect_input_gradient_is_the_difference(*kernel, y.slice(0, 1), x, theta, rng);
}

// A new kernel adds a line to kernel_cases() and inherits the contract.
TEST(Kernel, EveryKindMeetsTheContract) {
  for (const KernelCase& specimen : kernel_cases()) expect_kernel_contract(specimen);
}

TEST(Kernel, AWideGramMatrixIsThatOfItsColumnsOneByOne) {
  Rng rng(14, 0);
  for (const KernelCase& specimen : kernel_cases()) {
    SCOPED_TRACE(specimen.name);
    const auto kernel = surrogate::make_kernel(specimen.spec);
    const auto count = static_cast<Index>(kernel->hyperparameters(specimen.ordered, specimen.categories).size());
    const VectorXd theta = 0.5 * random_vector(rng, count);
    const surrogate::Points few = specimen.random_points(rng, 3);
    const surrogate::Points many = specimen.random_points(rng, 40);
    const MatrixXd k = kernel->gram(few, many, theta);
    ASSERT_EQ(k.rows(), 3);
    for (Index j = 0; j < many.size(); ++j)
      EXPECT_LE((k.col(j) - kernel->gram(few, many.slice(j, 1), theta)).cwiseAbs().maxCoeff(), 1e-14 * k.maxCoeff());
  }
}

/// Long-double correlations as functions of r, Rasmussen & Williams 2006, eq. 4.9 and 4.17.
using Correlation = long double (*)(long double r);
const std::vector<std::pair<surrogate::KernelKind, Correlation>> kTextbook = {
    {surrogate::KernelKind::kMatern52,
     [](long double r) {
       const long double u = std::sqrt(5.0L) * r;
       return (1.0L + u + u * u / 3.0L) * std::exp(-u);
     }},
    {surrogate::KernelKind::kMatern32,
     [](long double r) { return (1.0L + std::sqrt(3.0L) * r) * std::exp(-std::sqrt(3.0L) * r); }},
    {surrogate::KernelKind::kSquaredExponential, [](long double r) { return std::exp(-r * r / 2.0L); }},
};

TEST(StationaryKernel, HasTheTextbookValueAtUnitDistance) {
  const surrogate::Points x = surrogate::Points::zero(1, 1, 0);
  surrogate::Points y = x;
  y.ordered(0, 0) = 1.0;
  const auto value = [&](surrogate::KernelKind kind) {
    return surrogate::make_kernel(kind)->gram(x, y, VectorXd::Zero(2))(0, 0);
  };
  EXPECT_NEAR(value(surrogate::KernelKind::kMatern52), 0.523994108831820, 1e-14);  // (1 + sqrt 5 + 5/3) exp(-sqrt 5)
  EXPECT_NEAR(value(surrogate::KernelKind::kMatern32), 0.483357724596508, 1e-14);  // (1 + sqrt 3) exp(-sqrt 3)
  EXPECT_NEAR(value(surrogate::KernelKind::kSquaredExponential), 0.606530659712633, 1e-14);  // exp(-1/2)
}

TEST(StationaryKernel, TakesADifferentCategoryForAUnitOfDistance) {
  for (const auto& [kind, correlation] : kTextbook) {
    const auto kernel = surrogate::make_kernel(kind);
    const surrogate::Points x = surrogate::Points::zero(1, 1, 1);
    surrogate::Points y = x;
    y.categories(0, 0) = 5;  // the distance of the indices must not matter
    EXPECT_NEAR(kernel->gram(x, y, VectorXd::Zero(3))(0, 0), static_cast<double>(correlation(1.0L)), 1e-14);
    y.categories(0, 0) = 0;
    EXPECT_NEAR(kernel->gram(x, y, VectorXd::Zero(3))(0, 0), 1.0, 1e-15);
  }
}

TEST(StationaryKernel, AgreesWithTheFormulaInLongDouble) {
  Rng rng(12, 0);
  const surrogate::Points x = reference::random_points(rng, 19, 3, 2);
  const surrogate::Points y = reference::random_points(rng, 4, 3, 2);
  const VectorXd theta = random_vector(rng, 6);
  for (const auto& [kind, correlation] : kTextbook) {
    const MatrixXd k = surrogate::make_kernel(kind)->gram(x, y, theta);
    for (Index i = 0; i < x.size(); ++i)
      for (Index j = 0; j < y.size(); ++j) {
        const long double r = std::sqrt(reference::squared_distance(x, i, y, j, theta));
        EXPECT_NEAR(k(i, j), static_cast<double>(correlation(r)) * std::exp(theta[5]), 1e-14 * std::exp(theta[5]));
      }
  }
}

TEST(StationaryKernel, HasNoSlopeWherePointsCoincide) {
  const surrogate::Points x = surrogate::Points::zero(1, 2, 1);
  for (const auto& [kind, correlation] : kTextbook) {
    const VectorXd slope = surrogate::make_kernel(kind)->input_gradient(x, x, VectorXd::Zero(4), VectorXd::Ones(1));
    ASSERT_EQ(slope.size(), 2);
    EXPECT_LE(slope.cwiseAbs().maxCoeff(), 0.0);
    const MatrixXd weights = MatrixXd::Ones(1, 1);
    const VectorXd gradient = surrogate::make_kernel(kind)->weighted_gradient(x, VectorXd::Zero(4), weights);
    EXPECT_LE((gradient - VectorXd::Unit(4, 3)).cwiseAbs().maxCoeff(), 0.0);  // only s^2 changes k(x, x)
  }
}

TEST(StationaryKernel, KeepsItsValuesForPointsVeryNearAndVeryFar) {
  surrogate::Points x = surrogate::Points::zero(5, 1, 0);
  x.ordered.col(0) << 0.0, 1e-9, 1e-4, 0.5, 1.0;
  const VectorXd theta = VectorXd::Unit(2, 0) * std::log(0.01);  // r up to 100
  for (const auto& [kind, correlation] : kTextbook) {
    const MatrixXd k = surrogate::make_kernel(kind)->gram(x.slice(0, 1), x, theta);
    for (Index j = 0; j < x.size(); ++j) {
      const auto expected =
          static_cast<double>(correlation(std::abs(static_cast<long double>(x.ordered(j, 0))) * 100.0L));
      EXPECT_LE(std::abs(k(0, j) - expected), 1e-12 * expected + 1e-300)
          << j;  // the relative error of exp grows with r
    }
  }
}

TEST(StationaryKernel, DoesNotHideWhatIsNotANumber) {
  surrogate::Points x =
      surrogate::Points::zero(9, 2, 0);  // more than one vector register holds, and not a multiple of it
  x.ordered.col(1).setConstant(std::numeric_limits<double>::quiet_NaN());
  const surrogate::Points y = surrogate::Points::zero(2, 2, 0);
  for (const auto& [kind, correlation] : kTextbook)
    EXPECT_TRUE(surrogate::make_kernel(kind)->gram(x, y, VectorXd::Zero(3)).array().isNaN().all());
}

TEST(LinearKernel, IsTheCovarianceOfRandomSlopesThroughTheCentre) {
  surrogate::Points x = surrogate::Points::zero(2, 2, 0);
  x.ordered << 1.0, 0.25, 0.0, 0.75;
  VectorXd theta(3);
  theta << std::log(2.0), std::log(0.5), std::log(3.0);
  const auto kernel = surrogate::make_kernel(surrogate::KernelKind::kLinear);
  // 3 (0.5^2 / 4 + 0.25^2 / 0.25) and 3 (-0.5^2 / 4 - 0.25^2 / 0.25)
  EXPECT_NEAR(kernel->gram(x, x, theta)(0, 0), 0.9375, 1e-15);
  EXPECT_NEAR(kernel->gram(x, x, theta)(0, 1), -0.9375, 1e-15);
  x.ordered.row(1).setConstant(0.5);
  EXPECT_LE(kernel->gram(x, x, theta).col(1).cwiseAbs().maxCoeff(), 0.0);
}

TEST(Points, AppendAndSliceKeepRowsTogether) {
  Rng rng(13, 0);
  const surrogate::Points all = reference::random_points(rng, 7, 2, 1);
  surrogate::Points joined;
  joined.append(all.slice(0, 3));
  joined.append(all.slice(3, 4));
  EXPECT_EQ(joined.ordered, all.ordered);
  EXPECT_EQ(joined.categories, all.categories);
}

}  // namespace krigtune::kernel_test
