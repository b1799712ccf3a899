// How kernels are combined, and which specs are refused.
#include <gtest/gtest.h>

#include "surrogate/kernel_specs.h"
#include "user_error.h"

namespace krigtune::kernel_spec_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using enum surrogate::KernelKind;

VectorXd random_theta(Rng& rng, Index size) {
  return VectorXd::NullaryExpr(size, [&rng](Index) { return 0.5 * rng.normal(); });
}

double largest_difference(const MatrixXd& a, const MatrixXd& b) { return (a - b).cwiseAbs().maxCoeff(); }

TEST(SumKernel, IsTheSumOfItsParts) {
  Rng rng(21, 0);
  const surrogate::Points x = reference::random_points(rng, 7, 2, 1);
  const surrogate::Points y = reference::random_points(rng, 5, 2, 1);
  const VectorXd theta = random_theta(rng, 7);
  const auto sum = surrogate::make_kernel(sum_of({spec_of(kMatern52), spec_of(kLinear)}));
  const auto first = surrogate::make_kernel(kMatern52);
  const auto second = surrogate::make_kernel(kLinear);
  const MatrixXd expected = first->gram(x, y, theta.head(4)) + second->gram(x, y, theta.tail(3));
  EXPECT_LE(largest_difference(sum->gram(x, y, theta), expected), 1e-15 * expected.cwiseAbs().maxCoeff());
  const VectorXd diagonal = first->diagonal(x, theta.head(4)) + second->diagonal(x, theta.tail(3));
  EXPECT_LE(largest_difference(sum->diagonal(x, theta), diagonal), 1e-15 * diagonal.maxCoeff());
}

TEST(MainEffectsKernel, IsTheSumOfWhatColumnsDoAloneAndTogether) {
  Rng rng(25, 0);
  const surrogate::Points x = reference::random_points(rng, 7, 2, 2);
  const surrogate::Points y = reference::random_points(rng, 5, 2, 2);
  const VectorXd theta = random_theta(rng, 12);
  const auto sum = surrogate::make_kernel(
      sum_of({spec_of(kMatern52, ordered_columns({0, 1})), spec_of(kMatern52, category_columns({0})),
              spec_of(kMatern52, category_columns({1})), spec_of(kMatern52)}));
  EXPECT_EQ(surrogate::make_kernel(kMainEffects)->gram(x, y, theta), sum->gram(x, y, theta));
}

TEST(MainEffectsKernel, IsMatern52WhereThereIsNoCategory) {
  Rng rng(26, 0);
  const surrogate::Points x = reference::random_points(rng, 7, 3, 0);
  const surrogate::Points y = reference::random_points(rng, 5, 3, 0);
  const VectorXd theta = random_theta(rng, 4);
  EXPECT_EQ(surrogate::make_kernel(kMainEffects)->gram(x, y, theta),
            surrogate::make_kernel(kMatern52)->gram(x, y, theta));
}

TEST(ProductKernel, IsTheProductOfItsParts) {
  Rng rng(22, 0);
  const surrogate::Points x = reference::random_points(rng, 7, 2, 1);
  const surrogate::Points y = reference::random_points(rng, 5, 2, 1);
  const VectorXd theta = random_theta(rng, 11);
  const auto product =
      surrogate::make_kernel(product_of({spec_of(kMatern32), spec_of(kLinear), spec_of(kSquaredExponential)}));
  const MatrixXd expected = surrogate::make_kernel(kMatern32)->gram(x, y, theta.head(4)).array() *
                            surrogate::make_kernel(kLinear)->gram(x, y, theta.segment(4, 3)).array() *
                            surrogate::make_kernel(kSquaredExponential)->gram(x, y, theta.tail(4)).array();
  EXPECT_LE(largest_difference(product->gram(x, y, theta), expected), 1e-15 * expected.cwiseAbs().maxCoeff());
}

TEST(ProductKernel, HasAGradientWhereAFactorIsZero) {  // dividing by that factor would not give one
  surrogate::Points x = surrogate::Points::zero(1, 1, 0);
  x.ordered(0, 0) = 0.5;
  surrogate::Points z = x;
  z.ordered(0, 0) = 0.75;
  const auto product = surrogate::make_kernel(product_of({spec_of(kLinear), spec_of(kLinear)}));
  const VectorXd gradient = product->weighted_gradient(x, VectorXd::Zero(4), MatrixXd::Ones(1, 1));
  EXPECT_LE(gradient.cwiseAbs().maxCoeff(), 0.0);
  // k = (z - 1/2)^2 (x - 1/2)^2, and x = 1
  x.ordered(0, 0) = 1.0;
  EXPECT_NEAR(product->input_gradient(z, x, VectorXd::Zero(4), VectorXd::Ones(1))[0], 0.125, 1e-15);
}

TEST(Columns, AreThoseThatTheKernelSees) {
  Rng rng(23, 0);
  const surrogate::Points x = reference::random_points(rng, 7, 4, 2);
  const surrogate::Points y = reference::random_points(rng, 5, 4, 2);
  const auto seen = [](const surrogate::Points& all) {
    return surrogate::Points{all.ordered(Eigen::all, {3, 1}), all.categories(Eigen::all, {1}), {}};
  };
  const VectorXd theta = random_theta(rng, 4);
  const auto selected = surrogate::make_kernel(spec_of(kMatern52, {false, {3, 1}, {1}}));
  const auto plain = surrogate::make_kernel(kMatern52);
  EXPECT_LE(largest_difference(selected->gram(x, y, theta), plain->gram(seen(x), seen(y), theta)), 0.0);
  const VectorXd weights = random_theta(rng, 7);
  const VectorXd gradient = selected->input_gradient(y.slice(0, 1), x, theta, weights);
  const VectorXd expected = plain->input_gradient(seen(y.slice(0, 1)), seen(x), theta, weights);
  ASSERT_EQ(gradient.size(), 4);
  EXPECT_EQ(gradient[3], expected[0]);
  EXPECT_EQ(gradient[1], expected[1]);
  EXPECT_EQ(gradient[0], 0.0);
  EXPECT_EQ(gradient[2], 0.0);
}

TEST(Columns, OfAPartCountAmongThoseOfTheWhole) {
  Rng rng(24, 0);
  const surrogate::Points x = reference::random_points(rng, 6, 4, 0);
  const VectorXd theta = random_theta(rng, 5);
  const auto nested = surrogate::make_kernel(
      sum_of({spec_of(kMatern52, ordered_columns({1})), spec_of(kLinear)}, ordered_columns({0, 2})));
  const auto flat = surrogate::make_kernel(
      sum_of({spec_of(kMatern52, ordered_columns({2})), spec_of(kLinear, ordered_columns({0, 2}))}));
  EXPECT_LE(largest_difference(nested->gram(x, x, theta), flat->gram(x, x, theta)), 0.0);
}

TEST(KernelSpec, IsRefusedWithTheReasonAndThePlace) {
  const auto error = [](const surrogate::KernelSpec& spec) {
    return user_error_of([&] { surrogate::make_kernel(spec); });
  };
  surrogate::KernelSpec parts_of_none = spec_of(kMatern52);
  parts_of_none.parts = {spec_of(kMatern52), spec_of(kLinear)};
  const std::vector<std::pair<surrogate::KernelSpec, std::string>> bad = {
      {spec_of(kSum), "kernel: a sum or product needs two parts or more, not 0"},
      {product_of({spec_of(kLinear)}), "kernel: a sum or product needs two parts or more, not 1"},
      {parts_of_none, "kernel: only a sum or product has parts"},
      {spec_of(kLinear, {false, {0}, {0}}), "kernel: a linear kernel looks at ordered columns only"},
      {spec_of(kMatern52, {true, {0}, {}}),
       "kernel: columns are named although columns.all is true; set columns.all = false"},
      {spec_of(kMatern52, {false, {}, {}}), "kernel: it looks at no column; name one, or set columns.all = true"},
      {spec_of(kMatern52, ordered_columns({-1, 2})), "kernel: ordered column -1 is negative"},
      {spec_of(kMatern52, ordered_columns({2, 0, 2})), "kernel: ordered column 2 is named twice"},
      {spec_of(kMatern52, category_columns({1, 1})), "kernel: category column 1 is named twice"},
      {sum_of({spec_of(kMatern52), product_of({spec_of(kLinear), spec_of(kSum)})}),
       "kernel.parts[1].parts[1]: a sum or product needs two parts or more, not 0"},
      {spec_of(static_cast<surrogate::KernelKind>(99)), "kernel: there is no such kind"},
  };
  for (const auto& [spec, message] : bad) EXPECT_EQ(error(spec), message);
}

TEST(KernelSpec, IsRefusedForPointsThatLackItsColumns) {
  const auto error = [](const surrogate::KernelSpec& spec, Index ordered_dims, Index category_dims) {
    return user_error_of([&] { surrogate::make_kernel(spec)->hyperparameters(ordered_dims, category_dims); });
  };
  const surrogate::KernelSpec selecting = spec_of(kMatern52, {false, {0, 3}, {1}});
  EXPECT_EQ(error(selecting, 4, 2), "no error");
  EXPECT_EQ(error(selecting, 3, 2), "a kernel looks at ordered column 3 of points that have 3; columns count from 0");
  EXPECT_EQ(error(selecting, 4, 1), "a kernel looks at category column 1 of points that have 1; columns count from 0");
  EXPECT_EQ(error(spec_of(kLinear), 0, 2),
            "a linear kernel looks at ordered columns, and there are none; use it on points that have some");
  const surrogate::Points points = surrogate::Points::zero(2, 3, 2);
  EXPECT_NE(user_error_of([&] { surrogate::make_kernel(selecting)->gram(points, points, VectorXd::Zero(4)); }),
            "no error");
}

TEST(Kernel, OfNoPointsIsEmpty) {
  Rng rng(25, 0);
  for (const KernelCase& specimen : kernel_cases()) {
    SCOPED_TRACE(specimen.name);
    const auto kernel = surrogate::make_kernel(specimen.spec);
    const surrogate::Points none = specimen.random_points(rng, 0);
    const surrogate::Points some = specimen.random_points(rng, 3);
    const auto count = static_cast<Index>(kernel->hyperparameters(specimen.ordered, specimen.categories).size());
    const VectorXd theta = VectorXd::Zero(count);
    EXPECT_EQ(kernel->gram(none, some, theta).rows(), 0);
    EXPECT_EQ(kernel->gram(some, none, theta).cols(), 0);
    EXPECT_EQ(kernel->gram(none, none, theta).size(), 0);
    EXPECT_LE(kernel->weighted_gradient(none, theta, MatrixXd(0, 0)).cwiseAbs().sum(), 0.0);
    EXPECT_LE(kernel->input_gradient(some.slice(0, 1), none, theta, VectorXd(0)).cwiseAbs().sum(), 0.0);
  }
}

}  // namespace krigtune::kernel_spec_test
