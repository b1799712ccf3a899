#include "krigtune/surrogate/fantasies.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fantasy_draws.h"
#include "krigtune/surrogate/maximize.h"
#include "reference_gp.h"

namespace krigtune::fantasies_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using reference::random_points;

/// Two ordered columns and a category; theta = [log l, log l, log l, log s^2, log noise stddev].
const VectorXd kTheta = (VectorXd(5) << std::log(0.3), std::log(0.5), 0.0, std::log(1.5), std::log(0.1)).finished();

surrogate::GaussianProcess process_of(int count, Rng& rng, surrogate::Mean mean = surrogate::Mean::constant()) {
  surrogate::Observations observations{random_points(rng, count, 2, 1), VectorXd(count), {}};
  for (Index i = 0; i < count; ++i)
    observations.values[i] = std::sin(5.0 * observations.points.ordered(i, 0)) + observations.points.ordered(i, 1);
  surrogate::GaussianProcess process(surrogate::make_kernel(surrogate::KernelKind::kMatern52), std::move(mean));
  process.condition(observations, kTheta);
  return process;
}

double largest_difference(const VectorXd& a, const VectorXd& b) { return (a - b).cwiseAbs().maxCoeff(); }

TEST(FantasyImprovement, IsExpectedImprovementWhereNothingIsPending) {
  Rng rng(1, 0);
  const surrogate::GaussianProcess process = process_of(12, rng);
  const surrogate::Points at = random_points(rng, 300, 2, 1);
  const auto score = surrogate::make_fantasy_improvement(process, surrogate::Points::zero(0, 2, 1), 1.2, 64, rng);
  EXPECT_LE(largest_difference(score->values(at), surrogate::log_expected_improvement(process.predict(at), 1.2)),
            1e-11);
}

TEST(FantasyImprovement, OfTheExpectedValuesIsTheKrigingBeliever) {
  Rng rng(2, 0);
  surrogate::GaussianProcess process = process_of(12, rng);
  const surrogate::Points pending = random_points(rng, 3, 2, 1);
  const surrogate::Points at = random_points(rng, 50, 2, 1);
  const auto score = surrogate::make_fantasy_improvement(process, pending, 5.0, MatrixXd::Zero(3, 1));
  process.believe(pending);
  // Far above the believed values, so the incumbent stays the same.
  EXPECT_LE(largest_difference(score->values(at), surrogate::log_expected_improvement(process.predict(at), 5.0)),
            1e-10);
}

/// Draws one value after the other, each from the posterior given those before, with a process that then observes it.
double log_improvement_by_conditioning(const surrogate::GaussianProcess& process, const surrogate::Points& pending,
                                       double best, const surrogate::Points& at, int count, Rng& rng) {
  const double noise = process.noise_stddev();
  double sum = 0.0;
  for (int draw = 0; draw < count; ++draw) {
    surrogate::GaussianProcess copy = process;
    for (Index i = 0; i < pending.size(); ++i) {
      const surrogate::Points point = pending.slice(i, 1);
      const surrogate::Prediction before = copy.predict(point);
      const double value = before.mean[0] + std::sqrt(before.variance[0] + noise * noise) * rng.normal();
      copy.append({point, VectorXd::Constant(1, value), {}});
    }
    const double incumbent = std::max(best, copy.predict(pending).mean.maxCoeff());
    sum += std::exp(surrogate::log_expected_improvement(copy.predict(at), incumbent)[0]);
  }
  return std::log(sum / count);
}

TEST(FantasyImprovement, EqualsConditioningOnDrawnValues) {
  Rng rng(3, 0);
  const surrogate::GaussianProcess process = process_of(10, rng);
  const surrogate::Points pending = random_points(rng, 2, 2, 1);
  const double best = process.predict(process.points()).mean.maxCoeff();
  const auto score = surrogate::make_fantasy_improvement(process, pending, best, 4096, rng);
  for (int i = 0; i < 4; ++i) {
    const surrogate::Points at = random_points(rng, 1, 2, 1);
    const double want = log_improvement_by_conditioning(process, pending, best, at, 8000, rng);
    // EI varies by about its own size between draws: 1 / sqrt(8000) = 1.1 % is one standard error.
    EXPECT_LE(std::abs(score->values(at)[0] - want), 0.04);
  }
}

TEST(FantasyImprovement, NeedsFewQuasiRandomDraws) {
  Rng rng(4, 0);
  const surrogate::GaussianProcess process = process_of(10, rng);
  const surrogate::Points pending = random_points(rng, 3, 2, 1);
  const surrogate::Points at = random_points(rng, 50, 2, 1);
  const VectorXd many = surrogate::make_fantasy_improvement(process, pending, 1.0, 1 << 15, rng)->values(at);
  const VectorXd few = surrogate::make_fantasy_improvement(process, pending, 1.0, 128, rng)->values(at);
  // Independent draws would be off by 1 / sqrt(128) = 9 % of the spread of EI, which is about one, at most points.
  EXPECT_LE((few - many).cwiseAbs().mean(), 0.03);
}

TEST(FantasyImprovement, HasTheGradientOfItsDifferences) {
  Rng rng(5, 0);
  const surrogate::GaussianProcess process = process_of(10, rng);
  const surrogate::Points pending = random_points(rng, 2, 2, 1);
  const auto score = surrogate::make_fantasy_improvement(process, pending, 0.8, 32, rng);
  for (int i = 0; i < 20; ++i) {
    surrogate::Points at = random_points(rng, 1, 2, 1);
    VectorXd gradient;
    EXPECT_LE(std::abs(score->value_with_gradient(at, gradient) - score->values(at)[0]), 1e-10);
    for (Index j = 0; j < 2; ++j) {
      // The rounding error, 1e-15 / 1e-5, and the third derivative's step^2 are both below 1e-7 of the slope.
      const double step = 1e-5;
      const double here = at.ordered(0, j);
      at.ordered(0, j) = here + step;
      const double above = score->values(at)[0];
      at.ordered(0, j) = here - step;
      const double difference = (above - score->values(at)[0]) / (2.0 * step);
      at.ordered(0, j) = here;
      EXPECT_LE(std::abs(gradient[j] - difference), 1e-6 * (1.0 + std::abs(difference)));
    }
  }
}

TEST(FantasyImprovement, SendsEveryAskElsewhere) {
  Rng rng(6, 0);
  const surrogate::GaussianProcess process = process_of(8, rng);
  const double best = process.predict(process.points()).mean.maxCoeff();
  const surrogate::MixedSpace space{std::vector<surrogate::OrderedDimension>(2), {3}, {}, {}};
  surrogate::Points pending = surrogate::Points::zero(0, 2, 1);
  for (int ask = 0; ask < 6; ++ask) {
    const surrogate::Maximum found =
        surrogate::maximize(*surrogate::make_fantasy_improvement(process, pending, best, 64, rng), space, {}, rng);
    for (Index i = 0; i < pending.size(); ++i) {
      const bool same_category = pending.categories(i, 0) == found.point.categories(0, 0);
      const double distance = (pending.ordered.row(i) - found.point.ordered.row(0)).norm();
      EXPECT_FALSE(same_category && distance < 0.01) << "ask " << ask;
    }
    pending.append(found.point);
  }
}

TEST(FantasyImprovement, IsTheSameForTheSameRng) {
  Rng rng(7, 0);
  const surrogate::GaussianProcess process = process_of(8, rng);
  const surrogate::Points pending = random_points(rng, 2, 2, 1);
  const surrogate::Points at = random_points(rng, 20, 2, 1);
  Rng first(9, 1);
  Rng second(9, 1);
  EXPECT_EQ(surrogate::make_fantasy_improvement(process, pending, 1.0, 16, first)->values(at),
            surrogate::make_fantasy_improvement(process, pending, 1.0, 16, second)->values(at));
}

// With probability p a value comes and leaves the variance of a certain belief; otherwise the variance stays the same.
// The test compares with the expectation.
TEST(Believing, LeavesTheExpectedVarianceOfWhatMayFail) {
  Rng rng(5, 0);
  const surrogate::GaussianProcess before = process_of(12, rng);
  const surrogate::Points pending = random_points(rng, 1, 2, 1);
  const surrogate::Points elsewhere = random_points(rng, 20, 2, 1);
  surrogate::GaussianProcess sure = before;
  sure.believe(pending);
  for (const double success : {1.0, 0.7, 0.2, 1e-9}) {
    surrogate::GaussianProcess risky = before;
    risky.believe(pending, VectorXd::Constant(1, success));
    const double expected =
        success * sure.predict(pending).variance[0] + (1.0 - success) * before.predict(pending).variance[0];
    EXPECT_NEAR(risky.predict(pending).variance[0], expected, 1e-9 * before.predict(pending).variance[0]) << success;
    EXPECT_LE(largest_difference(risky.predict(elsewhere).mean, before.predict(elsewhere).mean), 1e-11);
  }
}

}  // namespace krigtune::fantasies_test
