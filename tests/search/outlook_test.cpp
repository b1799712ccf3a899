#include "search/model/outlook.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "search/fixtures.h"
#include "search/model/objective_model.h"

namespace krigtune::outlook_test {

constexpr double kNormal95 = 1.6448536269514722;

TEST(LargestDifference, OfOneIsAQuantileOfItsDifference) {
  EXPECT_LE(std::abs(search::largest_difference({{-0.1, 0.2, 1.0}}, 1.0, 0.95) - (-0.1 + kNormal95 * 0.2)), 1e-9);
  // With a probability of one half of succeeding, 5 % of all are 10 % of those that do.
  constexpr double kNormal90 = 1.2815515655446004;
  EXPECT_LE(std::abs(search::largest_difference({{-0.1, 0.2, 0.5}}, 1.0, 0.95) - (-0.1 + kNormal90 * 0.2)), 1e-9);
}

TEST(LargestDifference, IsNothingWhereNothingMayBeBetter) {
  EXPECT_EQ(search::largest_difference({}, 1.0, 0.95), 0.0);
  EXPECT_EQ(search::largest_difference({{-1.0, 0.1, 1.0}, {0.5, 0.1, 0.001}}, 1.0, 0.95), 0.0);
}

// A known value is a step function: on both sides of the step nothing changes.
TEST(LargestDifference, IsFoundWhereTheChanceIsAStep) {
  for (const double mean : {1e-4, 0.5, 30.0}) {
    const double bound = search::largest_difference({{mean, 1e-6, 1.0}, {-2.0, 1e-6, 1.0}}, 1.0, 0.95);
    EXPECT_LE(std::abs(bound - (mean + kNormal95 * 1e-6)), 1e-9 * std::max(mean, 1.0)) << mean;
  }
}

// n equal challengers, or one that counts n times.
TEST(LargestDifference, CountsTheWholeSpace) {
  const std::vector<search::Challenger> hundred(100, search::Challenger{-0.3, 0.2, 1.0});
  const double by_count = search::largest_difference(hundred, 1.0, 0.95);
  EXPECT_LE(std::abs(by_count - search::largest_difference({hundred.front()}, 100.0, 0.95)), 1e-9);
  constexpr double kNormal9995 = 3.2905267314919255;  // 1 - 0.05 / 100
  EXPECT_LE(std::abs(by_count - (-0.3 + kNormal9995 * 0.2)), 1e-9);
}

TEST(LargestDifference, HoldsAsOftenAsItSays) {
  Rng rng(3, 0);
  int held = 0;
  constexpr int kDraws = 4000;
  std::vector<search::Challenger> challengers;
  for (int i = 0; i < 30; ++i) challengers.push_back({-0.3 * rng.uniform(), 0.02 + 0.2 * rng.uniform(), rng.uniform()});
  const double bound = search::largest_difference(challengers, 1.0, 0.9);
  for (int draw = 0; draw < kDraws; ++draw) {
    bool is_held = true;
    for (const search::Challenger& one : challengers) {
      const bool succeeds = rng.uniform() < one.probability;
      is_held = is_held && !(succeeds && one.mean + one.stddev * rng.normal() > bound);
    }
    held += is_held ? 1 : 0;
  }
  // Boole's sum exceeds the probability of any by at most half its square.
  EXPECT_GE(held, kDraws * 0.885);
  EXPECT_LE(held, kDraws * 0.925);
}

/// A line of eleven configurations, some of which are measured.
class Outlooks : public testing::Test {
 protected:
  explicit Outlooks() : problem_(plain_session(R"({"x": {"min": 0, "max": 10}})")) {
    std::get<runner::ReplaySpec>(problem_.session.runner).repeats = runner::ReplaySpec::Repeats::kBest;
  }

  void add(std::int64_t x, const trial::Outcome& outcome) {
    journal::Trial trial;
    trial.number = static_cast<int>(history_.size());
    trial.proposal.configuration = space::Configuration({{"x", x}});
    trial.outcome = outcome;
    history_.push_back(trial);
  }
  void add(std::int64_t x, double value) { add(x, measured(problem_.session, value)); }

  surrogate::Prediction predict() const {
    search::TrialModel model(problem_.session.objective, problem_.candidates, history_);
    Rng rng(1, 1);
    model.fit(rng);
    return model.predict(problem_.candidates.to_score(history_, 1)->points);
  }
  journal::Proposal ask() const { return *problem_.strategy(search::StrategyKind::kBayes, 1)->ask(history_); }

  Problem problem_;
  search::History history_;
};

TEST_F(Outlooks, ComesWithWhatTheModelProposes) {
  for (const std::int64_t x : {0, 5, 10}) add(x, 100.0 - static_cast<double>((x - 6) * (x - 6)));
  const journal::Proposal proposal = ask();
  ASSERT_TRUE(proposal.outlook);
  EXPECT_GT(proposal.outlook->expected_gain, 0.0);
  EXPECT_GT(proposal.outlook->regret_bound, 0.0);
  EXPECT_EQ(proposal.outlook->confidence, 0.95);
}

// By the trapezoidal rule, over all remaining configurations: E[max(e^h - 1, 0)], h the latent gain over the best
// posterior mean.
TEST_F(Outlooks, ExpectsTheLargestGainOfAnyTrialThatIsLeft) {
  for (const std::int64_t x : {0, 4, 10}) add(x, 100.0 - static_cast<double>((x - 6) * (x - 6)));
  search::TrialModel model(problem_.session.objective, problem_.candidates, history_);
  Rng rng(1, static_cast<std::uint64_t>(search::counted_trials(history_)));
  model.fit(rng);
  const surrogate::Prediction prediction = model.predict(problem_.candidates.to_score(history_, 1)->points);
  double largest = 0.0;
  for (Eigen::Index x = 0; x <= 10; ++x) {
    if (x == 0 || x == 4 || x == 10) continue;
    const double mean = prediction.mean(x) - model.incumbent();
    const double stddev = model.widening() * std::sqrt(prediction.variance(x));
    double gain = 0.0;
    for (double z = -9.0; z <= 9.0; z += 1e-4) {
      gain += 1e-4 * std::exp(-0.5 * z * z) / std::sqrt(2.0 * M_PI) * std::max(std::expm1(mean + stddev * z), 0.0);
    }
    largest = std::max(largest, gain);
  }
  EXPECT_LE(std::abs(ask().outlook->expected_gain / largest - 1.0), 1e-3);
}

TEST_F(Outlooks, FallsAsMoreIsKnownAndIsHigherTheSurerItIsToBe) {
  const auto speed = [](std::int64_t x) { return 100.0 - static_cast<double>((x - 6) * (x - 6)); };
  for (const std::int64_t x : {0, 5, 10}) add(x, speed(x));
  const double at_first = ask().outlook->regret_bound;
  problem_.session.budget.confidence = 0.99;
  EXPECT_GT(ask().outlook->regret_bound, at_first);
  problem_.session.budget.confidence = 0.95;
  for (const std::int64_t x : {2, 3, 6, 7, 8}) add(x, speed(x));
  EXPECT_LT(ask().outlook->regret_bound, 0.5 * at_first);
}

// Gains are fractions, so the unit of the objective does not matter.
TEST_F(Outlooks, DoesNotDependOnTheUnit) {
  const auto speed = [](std::int64_t x) { return 100.0 - static_cast<double>((x - 6) * (x - 6)); };
  for (const std::int64_t x : {0, 5, 10}) add(x, speed(x));
  const journal::Outlook in_units = *ask().outlook;
  history_.clear();
  for (const std::int64_t x : {0, 5, 10}) add(x, 1000.0 * speed(x));
  const journal::Outlook in_thousandths = *ask().outlook;
  EXPECT_LE(std::abs(in_units.expected_gain / in_thousandths.expected_gain - 1.0), 1e-3);
  EXPECT_LE(std::abs(in_units.regret_bound / in_thousandths.regret_bound - 1.0), 1e-3);
}

// Two measured values that noise may have exchanged: the bound is a quantile of the difference of what they achieve,
// here by drawing both.
TEST_F(Outlooks, TheBoundIncludesAMeasuredRivalWhereValuesAreNoisy) {
  std::get<runner::ReplaySpec>(problem_.session.runner).repeats = runner::ReplaySpec::Repeats::kCycle;
  for (std::int64_t x = 0; x <= 10; ++x) {
    if (x == 1) continue;
    trial::Outcome outcome = measured(problem_.session, x == 8 ? 100.0 : x == 9 ? 99.0 : 1.0 + static_cast<double>(x));
    std::get<trial::Measured>(outcome).value_sem = 1.0;
    add(x, outcome);
  }
  const journal::Outlook outlook = *ask().outlook;
  ASSERT_TRUE(outlook.bound_of_new);
  EXPECT_LE(*outlook.bound_of_new, 0.001);
  EXPECT_GT(outlook.regret_bound, 0.02);

  search::TrialModel model(problem_.session.objective, problem_.candidates, history_);
  Rng fit(1, static_cast<std::uint64_t>(search::counted_trials(history_)));
  model.fit(fit);
  const search::AchievedValues& achieved = model.achieved(false);
  const Eigen::MatrixXd factor = achieved.covariance().llt().matrixL();
  Rng rng(5, 0);
  int held = 0;
  constexpr int kDraws = 20000;
  for (int draw = 0; draw < kDraws; ++draw) {
    Eigen::VectorXd z(factor.cols());
    for (double& one : z) one = rng.normal();
    const Eigen::VectorXd values = achieved.mean() + factor * z;
    Eigen::Index best = 0;
    achieved.mean().maxCoeff(&best);
    held += values.maxCoeff() - values(best) <= std::log1p(outlook.regret_bound) ? 1 : 0;
  }
  EXPECT_LE(std::abs(held / static_cast<double>(kDraws) - 0.95), 0.01);
}

TEST_F(Outlooks, MeasuredRivalsAreKnownWhereValuesAreExact) {
  for (const std::int64_t x : {0, 5, 10}) add(x, 100.0 - static_cast<double>((x - 6) * (x - 6)));
  const journal::Outlook outlook = *ask().outlook;
  ASSERT_TRUE(outlook.bound_of_new);
  EXPECT_LE(std::abs(*outlook.bound_of_new - outlook.regret_bound), 1e-4 * outlook.regret_bound);
}

// The moments of a truncated Gaussian with noise on the value, by the trapezoidal rule.
TEST(UpperBound, LeavesTheMomentsOfTheCensoredPosterior) {
  surrogate::Points points = surrogate::Points::zero(2, 1, 0);
  points.ordered(1, 0) = 0.3;
  surrogate::SurrogateOptions options;
  options.standardise = false;
  surrogate::Surrogate surrogate(options);
  Eigen::VectorXd theta(3);
  theta << std::log(0.5), std::log(0.25), std::log(0.1);  // lengthscale, signal variance, noise
  surrogate.condition({points.slice(0, 1), Eigen::VectorXd::Constant(1, 0.2), Eigen::VectorXd::Zero(1)}, theta);
  const surrogate::Prediction before = surrogate.predict(points.slice(1, 1));
  const double bound = before.mean(0) - 0.5 * std::sqrt(before.variance(0));
  double mass = 0.0;
  double first = 0.0;
  double second = 0.0;
  for (double z = -9.0; z <= 9.0; z += 1e-3) {
    const double f = before.mean(0) + z * std::sqrt(before.variance(0));
    const double weight = std::exp(-0.5 * z * z) * 0.5 * std::erfc((f - bound) / 0.1 / std::sqrt(2.0));
    mass += weight;
    first += weight * f;
    second += weight * f * f;
  }
  search::condition_on_upper_bounds(surrogate, points.slice(1, 1), Eigen::VectorXd::Constant(1, bound));
  const surrogate::Prediction after = surrogate.predict(points.slice(1, 1));
  EXPECT_LE(std::abs(after.mean(0) - first / mass), 1e-5);
  EXPECT_LE(std::abs(after.variance(0) - (second / mass - first * first / mass / mass)), 1e-5);
}

TEST_F(Outlooks, ABoundBelowWhatWasBelievedLowersItAndOneAboveDoesNot) {
  for (const std::int64_t x : {0, 1, 2}) add(x, 100.0 + 10.0 * static_cast<double>(x));
  const surrogate::Prediction before = predict();
  add(6, trial::Bounded{1e6});
  const surrogate::Prediction above = predict();
  EXPECT_LE(std::abs(above.mean(6) - before.mean(6)), 1e-6);
  history_.pop_back();
  add(6, trial::Bounded{90.0});
  const surrogate::Prediction below = predict();
  EXPECT_LE(below.mean(6), std::log(90.0));
  EXPECT_LT(below.mean(5), before.mean(5));
  EXPECT_LE(std::abs(below.mean(1) - before.mean(1)), 0.05);
}

}  // namespace krigtune::outlook_test
