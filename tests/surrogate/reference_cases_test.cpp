// Compares with Gaussian processes of other libraries at the same hyperparameters;
// golden/surrogate/make_reference_cases.py made the cases.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::reference_cases_test {

using Eigen::Index;
using Eigen::VectorXd;

struct Case {
  Json json;

  explicit Case(const std::string& name)
      : json(load_json(std::filesystem::path(KRIGTUNE_TEST_DIR) / "golden" / "surrogate" / (name + ".json"))) {}

  VectorXd vector(const std::string& key) const {
    const auto numbers = json.at(key).get<std::vector<double>>();
    return Eigen::Map<const VectorXd>(numbers.data(), static_cast<Index>(numbers.size()));
  }
  double number(const std::string& key) const { return json.at(key).get<double>(); }
  surrogate::Points points(const std::string& prefix) const {
    const auto ordered = json.at(prefix + "ordered").get<std::vector<std::vector<double>>>();
    std::vector<std::vector<int>> categories(ordered.size());
    if (json.contains(prefix + "categories"))
      categories = json.at(prefix + "categories").get<std::vector<std::vector<int>>>();
    surrogate::Points result =
        surrogate::Points::zero(static_cast<Index>(ordered.size()), static_cast<Index>(ordered[0].size()),
                                static_cast<Index>(categories[0].size()));
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      for (std::size_t j = 0; j < ordered[i].size(); ++j)
        result.ordered(static_cast<Index>(i), static_cast<Index>(j)) = ordered[i][j];
      for (std::size_t j = 0; j < categories[i].size(); ++j)
        result.categories(static_cast<Index>(i), static_cast<Index>(j)) = categories[i][j];
    }
    return result;
  }
};

/// Half of the smallest noise variance is the common one; the remainder is the known variance of each observation.
void expect_case(const Case& c, const surrogate::KernelSpec& kernel, const surrogate::Mean& mean,
                 const VectorXd& kernel_theta) {
  const VectorXd noise = c.vector("noise_variance");
  const double common = 0.5 * noise.minCoeff();
  VectorXd theta(kernel_theta.size() + 1);
  theta << kernel_theta, 0.5 * std::log(common);
  surrogate::GaussianProcess gp(surrogate::make_kernel(kernel), mean);
  gp.condition({c.points(""), c.vector("values"), noise.array() - common}, theta);
  const surrogate::Prediction got = gp.predict(c.points("at_"));
  const VectorXd want_mean = c.vector("mean");
  const VectorXd want_variance = c.vector("variance");
  ASSERT_EQ(got.mean.size(), want_mean.size());
  for (Index i = 0; i < want_mean.size(); ++i) {
    EXPECT_LE(std::abs(got.mean[i] - want_mean[i]), 1e-6 * std::abs(want_mean[i])) << i;
    EXPECT_LE(std::abs(got.variance[i] - want_variance[i]), 1e-6 * want_variance[i]) << i;
  }
  const double want = c.number("log_marginal_likelihood");
  EXPECT_LE(std::abs(gp.log_marginal_likelihood() - want), 1e-6 * std::abs(want));
}

TEST(ReferenceCases, ScikitLearnsMatern52OverFourDimensions) {
  const Case c("matern52");
  VectorXd theta(5);
  theta << c.vector("lengthscale").array().log(), std::log(c.number("signal_variance"));
  expect_case(c, {surrogate::KernelKind::kMatern52, {}, {}}, surrogate::Mean::zero(), theta);
}

TEST(ReferenceCases, BoTorchsSquaredExponentialOverTenDimensions) {
  const Case c("squared_exponential");
  VectorXd theta(11);
  theta << c.vector("lengthscale").array().log(), std::log(c.number("signal_variance"));
  expect_case(c, {surrogate::KernelKind::kSquaredExponential, {}, {}}, surrogate::Mean::zero(), theta);
}

TEST(ReferenceCases, BoTorchsMatern32TimesCategoriesAndAConstantMean) {
  const Case c("mixed");
  surrogate::KernelSpec ordered{surrogate::KernelKind::kMatern32, {}, {}};
  ordered.columns = {false, {0, 1, 2}, {}};
  surrogate::KernelSpec categories{surrogate::KernelKind::kSquaredExponential, {}, {}};
  categories.columns = {false, {}, {0, 1}};
  const surrogate::KernelSpec product{surrogate::KernelKind::kProduct, {}, {ordered, categories}};
  // exp(-(1/2) sum_j [differs] / l_j^2) corresponds to exp(-(1/c) sum_j [differs] / m_j): l_j^2 = c m_j / 2, here c =
  // 2.
  VectorXd theta(7);
  theta << c.vector("lengthscale").array().log(), std::log(c.number("signal_variance")),
      0.5 * c.vector("category_lengthscale").array().log(), 0.0;
  expect_case(c, product, surrogate::Mean::constant(std::sqrt(c.number("constant_variance"))), theta);
}

}  // namespace krigtune::reference_cases_test
