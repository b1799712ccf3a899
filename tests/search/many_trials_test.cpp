// More trials than an exact model can use.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "run/loop_fixture.h"
#include "search/large_spaces.h"
#include "search/model/best.h"
#include "search/model/relevant_trials.h"
#include "search/model/trial_model.h"

namespace krigtune::many_trials_test {

constexpr const char* kGrid = R"({"a": {"min": 0, "max": 39}, "b": {"min": 0, "max": 39}})";

double hill(const space::Configuration& c) {
  const double a = number(c, "a") / 39.0 - 0.6;
  const double b = number(c, "b") / 39.0 - 0.3;
  return 100.0 * std::exp(-2.0 * a * a - 3.0 * b * b);
}

// Random configurations, each once (seed 3). Every `fails`-th one fails.
search::History random_history(const Problem& problem, int trials, int fails = 0) {
  Rng rng(3, 1);
  search::History history;
  std::set<std::string> asked;
  while (static_cast<int>(history.size()) < trials) {
    const space::Configuration configuration = problem.session.space.sample(rng);
    if (!asked.insert(configuration.text()).second) continue;
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = configuration;
    trial.outcome = measured(problem.session, hill(configuration) * std::exp(0.01 * rng.normal()));
    if (fails > 0 && trial.number % fails == 0) trial.outcome = trial::Failed{trial::FailureReason::kCrash, 1, ""};
    history.push_back(trial);
  }
  return history;
}

TEST(RelevantRows, HoldTheBestTheirNeighboursAndLeaveNoGap) {
  const Problem problem(plain_session(kGrid));
  const search::History history = random_history(problem, 800);
  const search::RunEffects effects(problem.session.objective, history);
  const search::MeasuredConfigurations all =
      search::measured_configurations(problem.session.objective, problem.candidates, history, effects);
  const surrogate::Points& points = all.latent.points;
  const std::vector<Eigen::Index> rows = search::relevant_rows(points, all.latent.values, 64);
  ASSERT_EQ(rows.size(), 64U);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_EQ(std::set<Eigen::Index>(rows.begin(), rows.end()).size(), rows.size());
  Eigen::Index best = 0;
  all.latent.values.maxCoeff(&best);
  EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), best));
  Eigen::VectorXd nearest = Eigen::VectorXd::Constant(points.size(), HUGE_VAL);
  for (const Eigen::Index row : rows) nearest = nearest.cwiseMin(search::squared_distances(points, points, row));
  // 32 points fill the gaps of a square: no point is farther from them than a quarter of its side.
  EXPECT_LE(std::sqrt(nearest.maxCoeff()), 0.25);
  const std::vector<Eigen::Index> others = search::other_rows(rows, points.size());
  EXPECT_EQ(others.size() + rows.size(), static_cast<std::size_t>(points.size()));
}

TEST(RelevantRows, AreAllWhereThereAreFew) {
  const surrogate::Points points = surrogate::Points::zero(5, 2, 0);  // one point five times
  EXPECT_EQ(search::relevant_rows(points, Eigen::VectorXd::Zero(5), 5), (std::vector<Eigen::Index>{0, 1, 2, 3, 4}));
  EXPECT_EQ(search::spread_rows(points, 3).size(), 3U);
}

TEST(TrialModel, OfManyTrialsPredictsAsTheExactOneWithinItsOwnDoubt) {
  const Problem problem(plain_session(kGrid));
  const search::History history = random_history(problem, 500);
  search::TrialModel many(problem.session.objective, problem.candidates, history, 128);
  search::TrialModel exact(problem.session.objective, problem.candidates, history, 1000);
  Rng rng(1, 1);
  many.fit(rng);
  exact.fit(rng);
  EXPECT_EQ(many.measured().size(), 128);
  EXPECT_EQ(exact.measured().size(), 500);
  const surrogate::Points& points = problem.candidates.to_score(history, 1)->points;
  const surrogate::Prediction got = many.predict(points);
  const surrogate::Prediction want = exact.predict(points);
  const double root_mean_square = std::sqrt((got.mean - want.mean).squaredNorm() / static_cast<double>(points.size()));
  EXPECT_LE(root_mean_square, 0.01);  // the noise of one value
  EXPECT_NEAR(many.incumbent(), exact.incumbent(), 0.01);
}

TEST(TrialModel, OfManyTrialsRecommendsWhatTheExactOneDoes) {
  const Problem problem(plain_session(kGrid));
  const search::History history = random_history(problem, 500);
  search::TrialModel exact(problem.session.objective, problem.candidates, history, 1000);
  Rng rng(1, 1);
  exact.fit(rng);
  const auto want = search::recommend(problem.session, problem.candidates, history, exact);
  const auto got = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(want && got);
  EXPECT_GE(hill(got->configuration), 0.99 * hill(want->configuration));
}

TEST(TrialModel, TakesHyperparametersFromTheJournalWhileTrialsAreFewMore) {
  const Problem problem(plain_session(kGrid));
  search::History history = random_history(problem, 400);
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 1);
  const auto first = strategy->ask(history);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->fitted_to, 400);
  journal::Trial trial;
  trial.number = 400;
  trial.proposal = *first;
  trial.outcome = measured(problem.session, hill(first->configuration));
  history.push_back(trial);
  const auto second = strategy->ask(history);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->fitted_to, 400);
  EXPECT_EQ(second->hyperparameters, first->hyperparameters);
  EXPECT_NE(second->configuration, first->configuration);
}

TEST(Bayes, FitsOnceWhatItAsksWhileTrialsArePending) {
  const Problem problem(plain_session(kGrid));
  search::History history = random_history(problem, 30);
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 1);
  std::set<std::string> asked;
  std::vector<double> hyperparameters;
  for (int i = 0; i < 5; ++i) {
    const auto proposal = strategy->ask(history);
    ASSERT_TRUE(proposal);
    EXPECT_TRUE(asked.insert(proposal->configuration.text()).second);
    if (i > 0) {
      EXPECT_EQ(proposal->hyperparameters, hyperparameters);
    }
    hyperparameters = proposal->hyperparameters;
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal = *proposal;
    history.push_back(trial);
  }
}

// A question is a function of the history: whatever a strategy keeps between questions must not change an answer.
TEST(Bayes, OfManyTrialsAnswersWhilePendingAsOneThatIsAskedForTheFirstTime) {
  for (const char* space :
       {kGrid, R"({"a": {"min": 0, "max": 39}, "b": {"min": 0, "max": 39}, "c": {"min": 0, "max": 99}})"}) {
    const Problem problem(plain_session(space));
    search::History history = random_history(problem, 400, 7);
    const auto asked_before = problem.strategy(search::StrategyKind::kBayes, 1);
    std::set<std::string> asked;
    for (int i = 0; i < 6; ++i) {
      const auto got = asked_before->ask(history);
      const auto want = problem.strategy(search::StrategyKind::kBayes, 1)->ask(history);
      ASSERT_TRUE(got && want);
      EXPECT_EQ(got->configuration, want->configuration) << i;
      EXPECT_EQ(got->predicted_value, want->predicted_value) << i;
      EXPECT_EQ(got->predicted_stddev, want->predicted_stddev) << i;
      EXPECT_EQ(got->hyperparameters, want->hyperparameters) << i;
      EXPECT_EQ(got->outlook->regret_bound, want->outlook->regret_bound) << i;
      EXPECT_EQ(got->outlook->expected_gain, want->outlook->expected_gain) << i;
      EXPECT_TRUE(asked.insert(got->configuration.text()).second) << "pending already";
      journal::Trial trial;
      trial.number = static_cast<int>(history.size());
      trial.proposal = *got;
      history.push_back(trial);
      if (i == 3) history[401].outcome = measured(problem.session, hill(history[401].proposal.configuration));
    }
  }
}

TEST(Bayes, OfManyTrialsStaysAwayFromWhereTheyFail) {
  const Problem problem(plain_session(kGrid));
  search::History history = random_history(problem, 600);
  for (journal::Trial& trial : history) {
    if (number(trial.proposal.configuration, "a") > 20.0)
      trial.outcome = trial::Failed{trial::FailureReason::kCrash, 1, ""};
  }
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 1);
  const auto proposal = strategy->ask(history);
  ASSERT_TRUE(proposal);
  EXPECT_LE(number(proposal->configuration, "a"), 22.0);
  ASSERT_TRUE(proposal->success_probability);
  EXPECT_GE(*proposal->success_probability, 0.3);
}

TEST(TrialsWithoutGain, AreCountedAlikeWhereTheBestIsMeasuredAgainAndWorse) {
  const Problem problem(plain_session(kGrid));
  search::History history;
  const auto add = [&](int a, double value) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = {{"a", std::int64_t{a}}, {"b", std::int64_t{0}}};
    trial.outcome = measured(problem.session, value);
    history.push_back(trial);
  };
  add(1, 100.0);
  add(2, 110.0);  // a gain
  add(2, 60.0);   // its mean is now 85, so the best is 100 again
  EXPECT_EQ(search::best_value(problem.session.objective, history), 100.0);
  add(3, 111.0);  // less than 1 % above 110
  EXPECT_EQ(search::trials_without_gain(problem.session.objective, history), 2);
  add(4, 120.0);
  EXPECT_EQ(search::trials_without_gain(problem.session.objective, history), 0);
}

}  // namespace krigtune::many_trials_test
