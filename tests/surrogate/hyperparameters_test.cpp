#include "krigtune/surrogate/hyperparameters.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "hyperparameters.h"
#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"

namespace krigtune::hyperparameters_test {

using Eigen::Index;
using Eigen::VectorXd;
using Termination = surrogate::FitReport::Termination;

VectorXd normal_vector(Rng& rng, Index size) {
  return VectorXd::NullaryExpr(size, [&rng](Index) { return rng.normal(); });
}

struct Problem {
  surrogate::GpStructure structure{
      surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::zero(), {}};
  surrogate::Points points;
  VectorXd outputs;
  VectorXd known_variance;
  VectorXd theta;

  Problem() {
    Rng rng(21, 0);
    points = reference::random_points(rng, 14, 2, 1);
    outputs = normal_vector(rng, 14);
    known_variance = 0.1 * normal_vector(rng, 14).cwiseAbs();
    theta = 0.4 * normal_vector(rng, 5);
    theta[4] = std::log(0.2);
  }
  surrogate::Observations observations() const { return {points, outputs, known_variance}; }
  surrogate::HyperparameterPosterior posterior() const { return {structure, observations()}; }
};

TEST(HyperparameterPosterior, HasTheLikelihoodOfDenseInversesInLongDouble) {
  const Problem p;
  const VectorXd noise = p.known_variance.array() + std::exp(2.0 * p.theta[4]);
  const double want = static_cast<double>(reference::log_marginal_likelihood(
      p.points, reference::to_reference(p.outputs), reference::to_reference(noise), p.theta.head(4)));
  EXPECT_LE(std::abs(p.posterior().log_marginal_likelihood(p.theta, nullptr) - want), 1e-11 * std::abs(want));
}

TEST(HyperparameterPosterior, AddsNormalDensitiesOfTheLogarithms) {
  Problem p;
  p.structure.priors.lengthscale = {std::log(0.5), 0.7};
  p.structure.priors.signal_stddev = {std::log(2.0), 0.4};
  p.structure.priors.noise_stddev = {std::log(0.03), 1.1};
  const auto log_normal = [](double z, double stddev) {
    return std::log(std::exp(-0.5 * z * z / (stddev * stddev)) / (stddev * std::sqrt(2.0 * std::acos(-1.0))));
  };
  double want = p.posterior().log_marginal_likelihood(p.theta, nullptr);
  for (Index i = 0; i < 3; ++i) want += log_normal(p.theta[i] - std::log(0.5), 0.7);
  want += log_normal(p.theta[3] - 2.0 * std::log(2.0), 2.0 * 0.4);  // log s^2 = 2 log s
  want += log_normal(p.theta[4] - std::log(0.03), 1.1);
  EXPECT_LE(std::abs(p.posterior().log_density(p.theta, nullptr) - want), 1e-10);
}

TEST(HyperparameterPosterior, HasTheGradientOfItsDifferences) {
  const Problem p;
  const auto posterior = p.posterior();
  VectorXd gradient;
  posterior.log_density(p.theta, &gradient);
  // Truncation h^2 and rounding 1e-15 / h (for a log density of order 10) balance near h = 1e-5, at 1e-10.
  constexpr double kStep = 1e-5;
  for (Index i = 0; i < p.theta.size(); ++i) {
    VectorXd up = p.theta;
    VectorXd down = p.theta;
    up[i] += kStep;
    down[i] -= kStep;
    const double difference =
        (posterior.log_density(up, nullptr) - posterior.log_density(down, nullptr)) / (2.0 * kStep);
    EXPECT_LE(std::abs(gradient[i] - difference), 1e-7 * (1.0 + std::abs(difference))) << "parameter " << i;
  }
}

TEST(HyperparameterPriors, AreWhereTheFitStarts) {
  Problem p;
  p.structure.priors.lengthscale = {std::log(0.3), 0.5};
  p.structure.priors.signal_stddev = {0.3, 0.1};
  p.structure.priors.noise_stddev = {-2.0, 0.1};
  const VectorXd mode = p.posterior().prior_mode();
  for (Index i = 0; i < 3; ++i) EXPECT_LE(std::abs(std::exp(mode[i]) - 0.3), 1e-15);
  EXPECT_LE(std::abs(mode[3] - 0.6), 1e-15);
  EXPECT_EQ(mode[4], -2.0);
  p.structure.priors.noise_stddev.log_median = -50.0;  // outside the box
  EXPECT_LE(std::abs(p.posterior().prior_mode()[4] - std::log(1e-4)), 1e-12);
}

TEST(FitReport, SaysThatNothingHasRunUntilThen) {
  const surrogate::FitReport report;
  EXPECT_EQ(report.termination, Termination::kNotRun);
  EXPECT_EQ(report.message, "not run");
  EXPECT_EQ(report.evaluations, 0);
}

TEST(HyperparameterPosterior, DrawsInsideItsBounds) {
  Problem p;
  p.structure.priors.lengthscale.log_stddev = 50.0;
  const auto posterior = p.posterior();
  Rng rng(22, 0);
  for (int i = 0; i < 20; ++i) {
    const VectorXd drawn = posterior.draw(rng);
    EXPECT_TRUE((drawn.array() >= posterior.lower_bound().array()).all());
    EXPECT_TRUE((drawn.array() <= posterior.upper_bound().array()).all());
  }
}

/// Draws from the prior in one ordered dimension and adds noise.
VectorXd draw_outputs(const surrogate::Points& points, double lengthscale, double noise_stddev, Rng& rng) {
  VectorXd theta(3);
  theta << std::log(lengthscale), 0.0, std::log(noise_stddev);
  Eigen::MatrixXd k = surrogate::make_kernel(surrogate::KernelKind::kMatern52)->gram(points, points, theta.head(2));
  k.diagonal().array() += noise_stddev * noise_stddev;
  return k.llt().matrixL() * normal_vector(rng, points.size());
}

TEST(Fit, RecoversLengthscaleAndNoiseOfDrawsFromThePrior) {
  constexpr double kLengthscale = 0.25;
  constexpr double kNoise = 0.1;
  double log_lengthscale = 0.0;
  double log_noise = 0.0;
  constexpr int kDraws = 8;
  for (int draw = 0; draw < kDraws; ++draw) {
    Rng rng(23, static_cast<std::uint64_t>(draw));
    const surrogate::Points points = reference::random_points(rng, 60, 1, 0);
    const VectorXd values = 30.0 + 5.0 * draw_outputs(points, kLengthscale, kNoise, rng).array();
    surrogate::Surrogate gp;
    const surrogate::FitReport report = gp.fit({points, values, {}}, rng);
    EXPECT_EQ(report.termination, Termination::kConverged) << report.message;
    log_lengthscale += gp.theta()[0] / kDraws;
    log_noise += std::log(gp.noise_stddev() / 5.0) / kDraws;
  }
  // One fit of 60 points finds the lengthscale to about 30 % and the noise to 10 %; the geometric mean of eight is
  // better.
  EXPECT_LE(std::abs(log_lengthscale - std::log(kLengthscale)), std::log(1.4));
  EXPECT_LE(std::abs(log_noise - std::log(kNoise)), std::log(1.1));
}

TEST(Fit, EndsWhereTheGradientVanishes) {
  const Problem p;
  const auto posterior = p.posterior();
  Rng rng(24, 0);
  const auto fitted = surrogate::fit_hyperparameters(p.structure, p.observations(), 2, rng, std::nullopt);
  VectorXd gradient;
  const double reached = posterior.log_density(fitted.theta, &gradient);
  EXPECT_LE(std::abs(reached - fitted.report.log_posterior), 1e-12);
  // ftol_rel 1e-6 of a value of order 30 leaves 3e-5 nat, which is a slope of the order of sqrt(3e-5).
  EXPECT_LE(gradient.cwiseAbs().maxCoeff(), 0.05);
  EXPECT_GE(reached, posterior.log_density(posterior.prior_mode(), nullptr));
}

TEST(Fit, StartsFromAnEarlierFitToo) {
  const Problem p;
  const auto posterior = p.posterior();
  Rng rng(25, 0);
  const auto first = surrogate::fit_hyperparameters(p.structure, p.observations(), 3, rng, std::nullopt);
  const auto again = surrogate::fit_hyperparameters(p.structure, p.observations(), 0, rng, first.theta);
  EXPECT_GE(again.report.log_posterior, first.report.log_posterior - 1e-9);
  EXPECT_NE(again.report.message.find("of 2"), std::string::npos) << again.report.message;
}

TEST(Fit, GoesOnFromTheLastOptimumAlone) {
  Rng rng(31, 0);
  const surrogate::Points points = reference::random_points(rng, 41, 1, 0);
  const VectorXd values = draw_outputs(points, 0.3, 0.1, rng);
  const surrogate::Observations before{points.slice(0, 40), values.head(40), {}};
  const surrogate::Observations after{points, values, {}};
  surrogate::Surrogate gp;
  gp.fit(before, rng);
  surrogate::Surrogate again;
  const surrogate::FitReport quick = again.refit(after, gp.theta());
  EXPECT_NE(quick.message.find("start 1 of 1"), std::string::npos) << quick.message;
  const surrogate::FitReport whole = gp.fit(after, rng, gp.theta());
  EXPECT_LE(4 * quick.evaluations, 3 * whole.evaluations);
  // Both end within the stopping tolerance around the same optimum: 1e-6 of a value of order 10.
  EXPECT_LE(std::abs(quick.log_posterior - whole.log_posterior), 1e-4);
  EXPECT_LE((again.predict(points).mean - gp.predict(points).mean).cwiseAbs().maxCoeff(), 1e-2);
}

TEST(Fit, IsAFunctionOfDataAndSeed) {
  const Problem p;
  surrogate::Surrogate a;
  surrogate::Surrogate b;
  Rng rng_a(26, 3);
  Rng rng_b(26, 3);
  a.fit({p.points, p.outputs, {}}, rng_a);
  b.fit({p.points, p.outputs, {}}, rng_b);
  EXPECT_EQ(a.theta(), b.theta());
  EXPECT_EQ(a.predict(p.points).mean, b.predict(p.points).mean);
}

TEST(Fit, DoesNotDependOnTheUnitsOfTheValues) {
  const Problem p;
  surrogate::Surrogate a;
  surrogate::Surrogate b;
  Rng rng_a(27, 0);
  Rng rng_b(27, 0);
  a.fit({p.points, p.outputs, p.known_variance}, rng_a);
  b.fit({p.points, (1e6 + 1e4 * p.outputs.array()).matrix(), 1e8 * p.known_variance}, rng_b);
  EXPECT_LE((a.theta() - b.theta()).cwiseAbs().maxCoeff(), 1e-3);
  EXPECT_LE(std::abs(b.noise_stddev() / a.noise_stddev() / 1e4 - 1.0), 1e-3);
}

struct Degenerate {
  const char* name;
  surrogate::Points points;
  VectorXd values;
};

std::vector<Degenerate> degenerate_cases() {
  Rng rng(28, 0);
  const surrogate::Points twenty = reference::random_points(rng, 20, 2, 1);
  surrogate::Points same = twenty;
  same.ordered.setConstant(0.5);
  same.categories.setZero();
  return {{"one point", twenty.slice(0, 1), VectorXd::Constant(1, 7.0)},
          {"two points", twenty.slice(0, 2), VectorXd::LinSpaced(2, 1.0, 2.0)},
          {"equal values", twenty, VectorXd::Constant(20, 12345.678)},
          {"zeros", twenty, VectorXd::Zero(20)},
          {"one point twenty times", same, normal_vector(rng, 20)},
          {"one point and one value twenty times", same, VectorXd::Constant(20, 1e-3)},
          {"an outlier of 1e9", twenty, VectorXd::Unit(20, 4) * 1e9}};
}

TEST(Fit, SurvivesDataThatDetermineNothing) {
  for (const Degenerate& c : degenerate_cases()) {
    SCOPED_TRACE(c.name);
    surrogate::Surrogate gp;
    Rng rng(29, 0);
    const surrogate::FitReport report = gp.fit({c.points, c.values, {}}, rng);
    EXPECT_NE(report.termination, Termination::kNotRun);
    EXPECT_NE(report.termination, Termination::kFailed) << report.message;
    EXPECT_TRUE(std::isfinite(report.log_posterior));
    EXPECT_GT(report.evaluations, 0);
    EXPECT_TRUE(gp.theta().allFinite());
    const surrogate::Prediction prediction = gp.predict(c.points);
    EXPECT_TRUE(prediction.mean.allFinite());
    EXPECT_GE(prediction.variance.minCoeff(), 0.0);
  }
}

TEST(Fit, GivesThePriorsModeWhereNoLikelihoodExists) {
  Problem p;
  p.outputs[3] = std::nan("");
  const auto posterior = p.posterior();
  Rng rng(30, 0);
  const auto fitted = surrogate::fit_hyperparameters(p.structure, p.observations(), 1, rng, std::nullopt);
  EXPECT_EQ(fitted.report.termination, Termination::kFailed);
  EXPECT_EQ(fitted.theta, posterior.prior_mode());
}

TEST(Fit, RefusesToStartAtAThetaOfAnotherKernel) {
  const Problem p;
  Rng rng(31, 0);
  EXPECT_THROW(surrogate::fit_hyperparameters(p.structure, p.observations(), 0, rng, VectorXd::Zero(3)), UserError);
}

}  // namespace krigtune::hyperparameters_test
