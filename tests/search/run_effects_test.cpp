#include "search/trials/run_effects.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include "insight/predictions.h"
#include "krigtune/rng.h"
#include "search/fixtures.h"
#include "search/model/best.h"
#include "search/model/trial_model.h"
#include "search/trials/objective_scale.h"

namespace krigtune::run_effects_test {

constexpr double kPrior = 0.7;          // standard deviation of an effect
constexpr double kNoise = 0.03 * 0.03;  // variance of one measurement that states no error

constexpr const char* kSpace = R"({"x": {"min": 0, "max": 9}, "y": [1, 2, 3, 4, 5, 6, 7, 8]})";

space::Configuration at(std::int64_t x, std::int64_t y) { return {{"x", x}, {"y", y}}; }

class RunEffectsTest : public testing::Test {
 protected:
  journal::Trial& add(int run, const space::Configuration& configuration, double value, double sem = 0.0) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = configuration;
    trial.proposal.run = run;
    trial.proposal.strategy = "bayes";
    trial.outcome = measured(session, value);
    std::get<trial::Measured>(*trial.outcome).value_sem = sem;
    history.push_back(trial);
    return history.back();
  }
  search::RunEffects effects() const { return {session.objective, history}; }

  session::Session session = plain_session(kSpace);
  search::History history;
};

TEST_F(RunEffectsTest, AreNoneWhereASessionWasNeverContinued) {
  add(0, at(1, 1), 10.0);
  add(0, at(1, 1), 20.0);
  EXPECT_EQ(effects().columns(), 0);
  EXPECT_EQ(effects().factor(0), 1.0);
  EXPECT_EQ(*effects().value_of(history[1]), 20.0);
  EXPECT_EQ(search::run_effect_sentence(session.objective, history), "");
}

// If one configuration is measured once in each run, d = y_1 - y_0 ~ Normal(u, 2 v) and u ~ Normal(0, s^2).
TEST_F(RunEffectsTest, OfOneRepeatAreThoseOfTheConjugateNormalModel) {
  add(0, at(1, 1), 18.0);
  add(0, at(2, 1), 12.0);  // without influence, because the other run did not measure it
  add(1, at(1, 1), 10.0);
  const double gain = kPrior * kPrior / (kPrior * kPrior + 2.0 * kNoise);
  EXPECT_LE(std::abs(effects().shift(0) - gain * std::log(10.0 / 18.0)), 1e-12);
  EXPECT_LE(std::abs(effects().stddev(0) - std::sqrt(kPrior * kPrior * (1.0 - gain))), 1e-12);
  EXPECT_EQ(effects().shift(1), 0.0);
  EXPECT_EQ(effects().stddev(1), 0.0);
  EXPECT_LE(std::abs(*effects().value_of(history[1]) - 12.0 * std::pow(10.0 / 18.0, gain)), 1e-12);
  EXPECT_EQ(*effects().value_of(history[2]), 10.0);
}

TEST_F(RunEffectsTest, OfAMinimisedObjectiveHaveTheOtherFactor) {
  session = plain_session(kSpace, false);
  add(0, at(1, 1), 1.0);
  add(1, at(1, 1), 1.8);
  EXPECT_LE(std::abs(effects().factor(0) - 1.8), 0.01);
  EXPECT_EQ(search::run_effect_sentence(session.objective, history),
            "The machine is 1.8 times slower than in the first run; values are compared through that factor.");
}

TEST_F(RunEffectsTest, AreUnknownAsBeforehandWhereNothingWasMeasuredTwice) {
  add(0, at(1, 1), 18.0);
  add(1, at(2, 1), 10.0);
  EXPECT_EQ(effects().shift(0), 0.0);
  EXPECT_LE(std::abs(effects().stddev(0) - kPrior), 1e-12);
  EXPECT_EQ(search::run_effect_sentence(session.objective, history), "");
}

TEST_F(RunEffectsTest, AreNotEstimatedWhereValuesHaveNoLogarithm) {
  add(0, at(1, 1), -18.0);
  add(1, at(1, 1), 10.0);
  EXPECT_EQ(effects().columns(), 0);
  EXPECT_EQ(*effects().value_of(history[0]), -18.0);
}

TEST_F(RunEffectsTest, AreOfTheLatestRunThatHasMeasuredAnything) {
  add(0, at(1, 1), 18.0);
  add(1, at(1, 1), 10.0);
  add(2, at(1, 1), 5.0).outcome = trial::OutOfMemory{};
  EXPECT_EQ(effects().latest(), 1);
  EXPECT_EQ(*effects().value_of(history[1]), 10.0);
}

// A second way: all unknowns at once, with a prior for the effects of configurations so wide that it has no influence.
TEST_F(RunEffectsTest, OfSeveralRunsAreThoseOfTheJointPosterior) {
  constexpr int kConfigurations = 4;
  Rng rng(7, 0);
  Eigen::MatrixXd design = Eigen::MatrixXd::Zero(12, kConfigurations + 2);
  Eigen::VectorXd latent(12);
  Eigen::VectorXd weight(12);
  for (int i = 0; i < 12; ++i) {
    const int run = i % 3;
    const int which = static_cast<int>(rng.below(kConfigurations));
    const double value = std::exp(1.0 + 0.2 * which - 0.4 * run + 0.05 * rng.normal());
    const double sem = (0.01 + 0.04 * rng.uniform()) * value;
    add(run, at(which, 1), value, sem);
    design(i, which) = 1.0;
    if (run > 0) design(i, kConfigurations + run - 1) = 1.0;
    latent(i) = std::log(value);
    weight(i) = 1.0 / (sem * sem / (value * value) + kNoise);
  }
  Eigen::VectorXd precision = Eigen::VectorXd::Constant(kConfigurations + 2, 1e-8);
  precision.tail(2).setConstant(1.0 / (kPrior * kPrior));
  const Eigen::MatrixXd of_all = design.transpose() * weight.asDiagonal() * design;
  const Eigen::MatrixXd covariance = (of_all + Eigen::MatrixXd(precision.asDiagonal())).inverse();
  const Eigen::VectorXd mean = covariance * design.transpose() * weight.asDiagonal() * latent;
  const Eigen::Vector2d u = mean.tail(2);
  const Eigen::Matrix2d c = covariance.bottomRightCorner(2, 2);
  EXPECT_LE(std::abs(effects().shift(0) - u(1)), 1e-6);
  EXPECT_LE(std::abs(effects().shift(1) - (u(1) - u(0))), 1e-6);
  EXPECT_LE(std::abs(effects().stddev(0) - std::sqrt(c(1, 1))), 1e-6);
  EXPECT_LE(std::abs(effects().stddev(1) - std::sqrt(c(0, 0) + c(1, 1) - 2.0 * c(0, 1))), 1e-6);
}

TEST_F(RunEffectsTest, AreSaidInOneSentenceWithTheTrialThatShowsThem) {
  add(0, at(1, 1), 18.0);
  add(1, at(1, 1), 10.0).proposal.strategy = search::kAgainStrategy;
  EXPECT_EQ(search::run_effect_sentence(session.objective, history),
            "The machine is 1.8 times slower than in the first run (leader measured again as trial 1); values are "
            "compared through that factor.");
  std::get<trial::Measured>(*history[1].outcome).metrics["speed"] = 18.3;
  EXPECT_EQ(search::run_effect_sentence(session.objective, history), "");  // within noise
}

TEST_F(RunEffectsTest, AreNoNoiseOfTrials) {
  const Problem problem(session);
  for (const int run : {0, 1}) {
    for (int i = 0; i < 8; ++i) add(run, at(1, 1), (run == 0 ? 18.0 : 10.0) * (i % 2 == 0 ? 1.01 : 0.99), 1e-3);
  }
  EXPECT_LE(search::TrialNoise(session.objective, history).between_fraction(), 0.02);
}

double hill(const space::Configuration& c) {
  const double x = space::as_number(*c.find("x")) - 6.0;
  const double y = space::as_number(*c.find("y")) - 3.0;
  return 100.0 * std::exp(-0.03 * x * x - 0.05 * y * y);
}

// Half of the trials are in a run on a machine that is 1.8 times slower; some of them are repeats.
class TwoRuns : public RunEffectsTest {
 protected:
  TwoRuns() {
    Rng rng(3, 0);
    for (int i = 0; i < 12; ++i) measure(0, 1.0, rng);
    add(1, at(6, 3), 100.0 / 1.8);
    for (int i = 0; i < 11; ++i) measure(1, 1.0 / 1.8, rng);
    add(0, at(6, 3), 100.0);
  }
  void measure(int run, double speed, Rng& rng) {
    const space::Configuration c =
        at(static_cast<std::int64_t>(rng.below(10)), 1 + static_cast<std::int64_t>(rng.below(8)));
    add(run, c, speed * hill(c) * std::exp(0.01 * rng.normal()));
  }
};

TEST_F(TwoRuns, GiveTheBestMeansAndGainsOfOneScale) {
  const Problem problem(session);
  const auto best = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->configuration.text(), at(6, 3).text());
  EXPECT_LE(std::abs(best->value - 100.0 / 1.8), 0.5);
  EXPECT_LE(std::abs(best->posterior_mean - 100.0 / 1.8), 1.5);
  EXPECT_EQ(best->reference_trial, 0);
  EXPECT_LE(std::abs(best->gain - 100.0 / hill(history[0].proposal.configuration)), 0.03 * best->gain);
}

TEST_F(TwoRuns, GivePredictionsOfTheLatestOne) {
  const Problem problem(session);
  double worst = 0.0;
  insight::for_each_prediction(
      problem.session, problem.filter, problem.candidates, history, {}, [&](const insight::PredictionRow& row) {
        if (!row.observed) return;
        worst = std::max(worst, std::abs(std::log(*row.observed / (hill(row.configuration) / 1.8))));
      });
  EXPECT_LE(worst, 0.05);
}

// f = g + d is the smooth function plus the configuration's own part, and y = f + F z + e is observed. Uses the joint
// covariance.
TEST(AchievedValuesOfRuns, AreThePosteriorWithTheClocksErrorsShared) {
  constexpr Eigen::Index kCount = 6;
  constexpr double kOwn = 0.3;
  surrogate::SurrogateOptions options;
  options.standardise = false;
  options.mean = surrogate::Mean::weighted(1.0, Eigen::VectorXd::Zero(2), Eigen::VectorXd::Ones(2));
  surrogate::Points points = surrogate::Points::zero(kCount, 1, 0, 2);
  Eigen::VectorXd values(kCount);
  Rng rng(5, 0);
  for (Eigen::Index i = 0; i < kCount; ++i) {
    points.ordered(i, 0) = 0.2 * static_cast<double>(i);
    points.features(i, 0) = i < 3 ? 0.5 : 0.1;
    points.features(i, 1) = i % 2 == 0 ? 0.2 : 0.0;
    values(i) = rng.normal();
  }
  const Eigen::VectorXd stated = Eigen::VectorXd::Constant(kCount, 0.02);
  surrogate::Surrogate surrogate(options);
  surrogate.condition({points, values, stated}, Eigen::Vector3d(std::log(0.4), std::log(0.8), std::log(kOwn)));
  const search::AchievedValues achieved(surrogate, points, stated, 0.0, points.features);

  surrogate::Points today = points;
  today.features.setZero();
  const surrogate::GaussianProcess& process = surrogate.processes().front();
  const Eigen::MatrixXd prior =
      process.prior_covariance(today, today) + kOwn * kOwn * Eigen::MatrixXd::Identity(kCount, kCount);
  const Eigen::MatrixXd observed =
      prior + points.features * points.features.transpose() + Eigen::MatrixXd(stated.asDiagonal());
  const Eigen::MatrixXd gain = prior * observed.inverse();
  EXPECT_LE((achieved.mean() - gain * values).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((achieved.covariance() - (prior - gain * prior)).cwiseAbs().maxCoeff(), 1e-9);
  surrogate::Points elsewhere = surrogate::Points::zero(1, 1, 0, 2);
  elsewhere.ordered(0, 0) = 0.33;
  const Eigen::VectorXd cross = process.prior_covariance(today, elsewhere).col(0);
  EXPECT_LE((achieved.covariance_with(elsewhere) - (cross - gain * cross)).cwiseAbs().maxCoeff(), 1e-9);
}

}  // namespace krigtune::run_effects_test
