#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <array>
#include <cmath>

#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"

namespace krigtune::coverage_test {

using Eigen::Index;
using Eigen::VectorXd;

constexpr Index kFitted = 30;
constexpr Index kHeldOut = 30;
constexpr int kDraws = 120;  // 3600 predicted points

VectorXd some_theta() {
  VectorXd theta(5);
  theta << std::log(0.4), std::log(0.7), std::log(1.0), std::log(1.5), std::log(0.15);
  return theta;
}

/// A draw from the priors of the hyperparameters.
VectorXd drawn_theta(const surrogate::HyperparameterPriors& priors, std::uint64_t stream) {
  Rng rng(83, stream);
  VectorXd theta(5);
  for (Index i = 0; i < 3; ++i) theta[i] = priors.lengthscale.log_median + priors.lengthscale.log_stddev * rng.normal();
  theta[3] = 2.0 * (priors.signal_stddev.log_median + priors.signal_stddev.log_stddev * rng.normal());
  theta[4] = priors.noise_stddev.log_median + priors.noise_stddev.log_stddev * rng.normal();
  return theta;
}

/// A draw from the prior of a process with a constant mean, measured with noise of which a part is known.
struct Draw {
  surrogate::Observations fitted;
  surrogate::Observations held_out;

  Draw(std::uint64_t stream, const VectorXd& theta) {
    Rng rng(81, stream);
    const surrogate::Points points = reference::random_points(rng, kFitted + kHeldOut, 2, 1);
    const VectorXd known =
        VectorXd::NullaryExpr(points.size(), [&rng](Index i) { return i % 2 == 0 ? 0.0 : 0.1 * rng.uniform(); });
    Eigen::MatrixXd covariance =
        surrogate::make_kernel(surrogate::KernelKind::kMatern52)->gram(points, points, theta.head(4));
    covariance.array() += 1.0;  // covariance of the constant
    covariance.diagonal() += (known.array() + std::exp(2.0 * theta[4])).matrix();
    const VectorXd normal = VectorXd::NullaryExpr(points.size(), [&rng](Index) { return rng.normal(); });
    const VectorXd values = covariance.llt().matrixL() * normal;
    fitted = {points.slice(0, kFitted), values.head(kFitted), known.head(kFitted)};
    held_out = {points.slice(kFitted, kHeldOut), values.tail(kHeldOut), known.tail(kHeldOut)};
  }
};

constexpr std::array kLevels{0.5, 0.9, 0.95};

/// Share of the standardised errors that lie inside the central interval.
struct Coverage {
  std::array<double, 3> inside{};
  double count = 0.0;

  void add(double error, double variance) {
    for (std::size_t i = 0; i < kLevels.size(); ++i)
      if (std::erf(std::abs(error) / std::sqrt(2.0 * variance)) <= kLevels[i]) inside[i] += 1.0;
    count += 1.0;
  }
};

TEST(Coverage, OfDrawsFromThePriorIsWhatTheIntervalsPromise) {
  Coverage coverage;
  std::array<double, 3> left_out{};
  for (std::uint64_t stream = 0; stream < kDraws; ++stream) {
    const Draw draw(stream, some_theta());
    surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52),
                                  surrogate::Mean::constant());
    gp.condition(draw.fitted, some_theta());
    const surrogate::Prediction prediction = gp.predict(draw.held_out.points);
    for (Index i = 0; i < kHeldOut; ++i)
      coverage.add(draw.held_out.values[i] - prediction.mean[i],
                   prediction.variance[i] + draw.held_out.variance[i] + gp.noise_stddev() * gp.noise_stddev());
    for (std::size_t i = 0; i < kLevels.size(); ++i)
      left_out[i] += gp.leave_one_out().coverage(gp.values(), kLevels[i]) / kDraws;
  }
  EXPECT_GE(coverage.count, 2000.0);
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    EXPECT_LE(std::abs(coverage.inside[i] / coverage.count - kLevels[i]), 0.03) << kLevels[i];
    EXPECT_LE(std::abs(left_out[i] - kLevels[i]), 0.03) << kLevels[i];
  }
}

/// Returns the coverage of the nominal 90 % interval if the hyperparameters are learned from each draw of theta and
/// function.
double learned_coverage() {
  const surrogate::SurrogateOptions options;
  Coverage coverage;
  for (std::uint64_t stream = 0; stream < 60; ++stream) {
    const Draw draw(stream, drawn_theta(options.priors, stream));
    surrogate::Surrogate surrogate(options);
    Rng rng(82, stream);
    surrogate.fit(draw.fitted, rng);
    const surrogate::Prediction prediction = surrogate.predict(draw.held_out.points);
    const double noise = surrogate.noise_stddev() * surrogate.noise_stddev();
    for (Index i = 0; i < kHeldOut; ++i)
      coverage.add(draw.held_out.values[i] - prediction.mean[i],
                   prediction.variance[i] + draw.held_out.variance[i] + noise);
  }
  return coverage.inside[1] / coverage.count;
}

TEST(Coverage, WithLearnedHyperparametersIsNotFarOff) {
  const double coverage = learned_coverage();
  EXPECT_GE(coverage, 0.82);  // the mode ignores its own uncertainty, which is large for 30 points
  EXPECT_LE(coverage, 0.93);
}

}  // namespace krigtune::coverage_test
