#include <gtest/gtest.h>

#include <cmath>

#include "krigtune/surrogate/surrogate.h"
#include "surrogate/kernel_specs.h"
#include "surrogate/reference_gp.h"

namespace krigtune::prediction_gradient_test {

using Eigen::Index;
using Eigen::VectorXd;

surrogate::Observations mixed_data() {
  Rng rng(51, 0);
  surrogate::Observations data{reference::random_points(rng, 15, 3, 1), VectorXd(15), {}};
  data.points.features = (0.5 + data.points.ordered.col(0).array()).matrix();
  for (Index i = 0; i < 15; ++i)
    data.values[i] = 2.0 + std::sin(5.0 * data.points.ordered(i, 0)) + data.points.ordered(i, 1) +
                     0.3 * data.points.categories(i, 0);
  return data;
}

/// Central differences with respect to the ordered columns, with the feature held fixed. Truncation, h^2 times a third
/// derivative of some hundreds, and rounding, 1e-13 / h, balance at 1e-7 of a unit.
void expect_gradient_of_differences(const surrogate::Model& model, const surrogate::Points& point) {
  constexpr double kStep = 2e-5;
  constexpr double kTolerance = 2e-6;
  const surrogate::PredictionGradient got = model.predict_with_gradient(point);
  const surrogate::Prediction here = model.predict(point);
  EXPECT_LE(std::abs(got.mean - here.mean[0]), 1e-12 * (1.0 + std::abs(got.mean)));
  EXPECT_LE(std::abs(got.variance - here.variance[0]), 1e-12);
  ASSERT_EQ(got.mean_gradient.size(), point.ordered.cols());
  ASSERT_EQ(got.variance_gradient.size(), point.ordered.cols());
  for (Index i = 0; i < point.ordered.cols(); ++i) {
    surrogate::Points up = point;
    surrogate::Points down = point;
    up.ordered(0, i) += kStep;
    down.ordered(0, i) -= kStep;
    const surrogate::Prediction above = model.predict(up);
    const surrogate::Prediction below = model.predict(down);
    const double mean = (above.mean[0] - below.mean[0]) / (2.0 * kStep);
    const double variance = (above.variance[0] - below.variance[0]) / (2.0 * kStep);
    EXPECT_LE(std::abs(got.mean_gradient[i] - mean), kTolerance * (1.0 + std::abs(mean))) << "column " << i;
    EXPECT_LE(std::abs(got.variance_gradient[i] - variance), kTolerance * (1.0 + std::abs(variance))) << "column " << i;
  }
}

surrogate::Points probes(const surrogate::Observations& data) {
  Rng rng(52, 0);
  surrogate::Points probes = reference::random_points(rng, 6, 3, 1);
  probes.features = VectorXd::LinSpaced(6, 0.6, 1.4);
  probes.append(data.points.slice(4, 1));  // the kernel has its kink there
  return probes;
}

TEST(PredictionGradient, OfAGaussianProcessIsThatOfItsDifferences) {
  const surrogate::Observations data = mixed_data();
  VectorXd theta(6);
  theta << std::log(0.4), std::log(0.6), std::log(0.9), std::log(1.1), std::log(1.5), std::log(0.1);
  for (const surrogate::Mean& mean :
       {surrogate::Mean::zero(), surrogate::Mean::constant(), surrogate::Mean::linear(1), surrogate::Mean::scaled()}) {
    surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52), mean);
    gp.condition(data, theta);
    const surrogate::Points at = probes(data);
    gp.believe(at.slice(0, 1));
    for (Index i = 0; i < at.size(); ++i) expect_gradient_of_differences(gp, at.slice(i, 1));
  }
}

TEST(PredictionGradient, OfSumsAndProductsThatAreNotStationaryToo) {
  const surrogate::Observations data = mixed_data();
  for (const surrogate::KernelSpec& spec :
       {sum_of({spec_of(surrogate::KernelKind::kSquaredExponential), spec_of(surrogate::KernelKind::kLinear)}),
        product_of({spec_of(surrogate::KernelKind::kMatern52), spec_of(surrogate::KernelKind::kLinear)}),
        spec_of(surrogate::KernelKind::kMatern32)}) {
    const auto kernel = surrogate::make_kernel(spec);
    const auto parameters = static_cast<Index>(kernel->hyperparameters(3, 1).size());
    VectorXd theta = VectorXd::LinSpaced(parameters + 1, 0.2, -0.6);
    theta[parameters] = std::log(0.2);
    surrogate::GaussianProcess gp(kernel, surrogate::Mean::constant());
    gp.condition(data, theta);
    const surrogate::Points at = probes(data);
    for (Index i = 0; i < at.size() - 1; ++i) expect_gradient_of_differences(gp, at.slice(i, 1));
  }
}

TEST(PredictionGradient, OfASurrogateIsThatOfItsDifferences) {
  const surrogate::Observations data = mixed_data();
  for (const auto kind : {surrogate::OutputTransform::Kind::kIdentity, surrogate::OutputTransform::Kind::kLog,
                          surrogate::OutputTransform::Kind::kRankRobust}) {
    surrogate::SurrogateOptions options;
    options.mean = surrogate::Mean::scaled();
    options.transform = kind;
    options.priors.noise_stddev.log_stddev = 0.3;  // a smaller one would make third derivatives of some thousands
    surrogate::Surrogate surrogate(options);
    Rng rng(53, 0);
    surrogate.fit(data, rng);
    const surrogate::Points at = probes(data);
    for (Index i = 0; i < at.size(); ++i) expect_gradient_of_differences(surrogate, at.slice(i, 1));
  }
}

}  // namespace krigtune::prediction_gradient_test
