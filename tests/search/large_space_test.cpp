// Spaces that cannot be listed: continuous ranges, and more configurations than a list can contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compare/compare.h"
#include "insight/predictions.h"
#include "run/loop_fixture.h"
#include "search/large_spaces.h"
#include "search/model/best.h"
#include "user_error.h"

namespace krigtune::large_space_test {

double best_of(const Problem& problem, const search::History& history) {
  return search::best_value(problem.session.objective, history).value_or(0.0);
}

class EveryStrategyInALargeSpace : public testing::TestWithParam<search::StrategyKind> {};

TEST_P(EveryStrategyInALargeSpace, AsksAnew) {
  for (const char* space : {kReal, kHuge}) {
    const Problem problem(plain_session(space));
    const auto answer = [&](const space::Configuration& c) -> trial::Outcome {
      const double value = c.has("lr") ? real_hill(c) : huge_hill(c);
      if (value < 10.0) return trial::OutOfMemory{};
      return measured(problem.session, value);
    };
    const search::History whole = problem.drive(GetParam(), 5, 12, answer);
    // stagewise ends when the first configuration of its only stage fails.
    if (GetParam() == search::StrategyKind::kStagewise) {
      ASSERT_GE(whole.size(), 1U);
    } else {
      ASSERT_EQ(whole.size(), 12U);
    }
    std::set<std::string> asked;
    for (const journal::Trial& trial : whole) {
      EXPECT_TRUE(asked.insert(trial.proposal.configuration.text()).second);
      EXPECT_TRUE(problem.session.space.contains(trial.proposal.configuration)) << trial.proposal.configuration.text();
    }
    for (std::size_t cut = 1; cut < whole.size(); cut += 4) {
      const search::History prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
      EXPECT_EQ(texts(problem.drive(GetParam(), 5, 12, answer, prefix)), texts(whole)) << "resumed after " << cut;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategyInALargeSpace, testing::ValuesIn(search::all_strategies()),
                         [](const auto& param_info) { return to_string(param_info.param); });

TEST(Bayes, ComesNearTheBestOfARealSpace) {
  const Problem problem(plain_session(kReal));
  const auto answer = [&](const space::Configuration& c) { return measured(problem.session, real_hill(c)); };
  double random = 0.0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    EXPECT_GE(best_of(problem, problem.drive(search::StrategyKind::kBayes, seed, 30, answer)), 97.0) << "seed " << seed;
    random += best_of(problem, problem.drive(search::StrategyKind::kRandom, seed, 30, answer)) / 2.0;
  }
  RecordProperty("random_mean", static_cast<int>(random));
  EXPECT_LE(random, 95.0);
}

TEST(Bayes, ComesNearTheBestOfAHugeSpace) {
  const Problem problem(plain_session(kHuge));
  const auto answer = [&](const space::Configuration& c) { return measured(problem.session, huge_hill(c)); };
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    EXPECT_GE(best_of(problem, problem.drive(search::StrategyKind::kBayes, seed, 30, answer)), 97.0) << "seed " << seed;
  }
  EXPECT_EQ(problem.candidates.space_count(), 104'060'401);
}

TEST(Bayes, LearnsFromABaselineFarOutsideARealSpace) {
  session::Session session = plain_session(kReal);
  session.baseline =
      space::Configuration{{"lr", 10.0}, {"momentum", -3.0}, {"kind", std::string("c")}, {"depth", std::int64_t{99}}};
  const Problem problem(std::move(session));
  const search::History history = problem.drive(search::StrategyKind::kBayes, 1, 8, [&](const space::Configuration& c) {
    return measured(problem.session, 1.0 + number(c, "momentum") * number(c, "momentum"));
  });
  EXPECT_EQ(history.size(), 8U);
  EXPECT_TRUE(search::recommend(problem.session, problem.candidates, history, 1));
}

TEST(Grid, HasTheEndsOfARealRange) {
  const Problem problem(plain_session(R"({"x": {"type": "real", "min": 1, "max": 100, "scale": "log"},
                                          "y": {"type": "real", "min": 0, "max": 1}})"));
  std::set<double> x;
  std::set<double> y;
  for (const journal::Trial& trial : problem.drive(search::StrategyKind::kGrid, 1, 9, [&](const space::Configuration&) {
         return measured(problem.session, 1.0);
       })) {
    x.insert(number(trial.proposal.configuration, "x"));
    y.insert(number(trial.proposal.configuration, "y"));
  }
  ASSERT_EQ(x.size(), 3U);  // 3 x 3 points
  EXPECT_EQ(*x.begin(), 1.0);
  EXPECT_NEAR(*std::next(x.begin()), 10.0, 1e-12);
  EXPECT_EQ(*x.rbegin(), 100.0);
  EXPECT_EQ(y, (std::set<double>{0.0, 0.5, 1.0}));
}

TEST(Grid, WalksAHugeFactorialInTheSessionsOrder) {
  session::Session session = plain_session(kHuge);
  session.grid.order = session::GridOrder::kSession;
  const Problem problem(std::move(session));
  const std::vector<std::string> asked =
      texts(problem.drive(search::StrategyKind::kGrid, 1, 102,
                          [&](const space::Configuration&) { return measured(problem.session, 1.0); }));
  EXPECT_EQ(asked.front(), "a=0 b=0 c=0 d=0");
  EXPECT_EQ(asked.back(), "a=0 b=0 c=1 d=0");
}

TEST_P(EveryStrategyInALargeSpace, EndsWhereTheRealRangeExistsNowhere) {
  const Problem problem(
      plain_session(R"({"a": [1, 2, 3], "x": {"type": "real", "min": 0, "max": 1, "when": "a == 4"}})"));
  ASSERT_FALSE(problem.candidates.listed());
  const search::History history =
      problem.drive(GetParam(), 1, 10, [&](const space::Configuration&) { return measured(problem.session, 1.0); });
  const std::vector<std::string> asked = texts(history);
  EXPECT_EQ(std::set<std::string>(asked.begin(), asked.end()), (std::set<std::string>{"a=1", "a=2", "a=3"}));
  EXPECT_EQ(asked.size(), 3U);
}

class LargePredictions : public testing::Test {
 protected:
  static std::vector<insight::PredictionRow> rows(const Problem& problem, const insight::PredictOptions& options) {
    std::vector<insight::PredictionRow> found;
    insight::for_each_prediction(problem.session, problem.filter, problem.candidates, {}, options,
                                 [&](const insight::PredictionRow& row) { found.push_back(row); });
    return found;
  }
};

TEST_F(LargePredictions, NeedASample) {
  for (const char* space : {kReal, kHuge}) {
    const Problem problem(plain_session(space));
    const std::string message = user_error_of([&] { rows(problem, {}); });
    EXPECT_NE(message.find("--sample"), std::string::npos) << message;
  }
}

TEST_F(LargePredictions, SampleWithoutReplacementInLatticeOrder) {
  const Problem problem(plain_session(kHuge));
  insight::PredictOptions options;
  options.sample = 500;
  options.where = [](const space::Configuration& c) { return number(c, "a") <= 1; };
  const std::vector<insight::PredictionRow> found = rows(problem, options);
  ASSERT_EQ(found.size(), 500U);
  std::set<std::string> distinct;
  const auto position = [](const space::Configuration& c) {
    return std::tuple(number(c, "a"), number(c, "b"), number(c, "c"), number(c, "d"));
  };
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE(number(found[i].configuration, "a"), 1.0);
    distinct.insert(found[i].configuration.text());
    if (i == 0) continue;
    EXPECT_LT(position(found[i - 1].configuration), position(found[i].configuration));
  }
  EXPECT_EQ(distinct.size(), 500U);
  options.where = [](const space::Configuration& c) { return number(c, "a") > 1000; };
  EXPECT_TRUE(rows(problem, options).empty());  // and the call returns
}

TEST(LargeCompare, GivesEveryStrategyItsBudget) {
  const session::Session session = plain_session(kReal);
  const Problem problem(session);
  compare::CompareOptions options;
  options.seeds = 2;
  options.trials = 6;
  const ManualClock clock;
  const compare::Comparison comparison = compare::compare(
      problem.session, problem.candidates, options,
      [&] {
        return std::make_unique<FakeRunner>(
            [&](const space::Configuration& c) { return measured(session, real_hill(c)); });
      },
      clock);
  EXPECT_EQ(comparison.trials.size(), 3U * 2U * 6U + 6U) << "stagewise draws nothing and runs once";
}

TEST_F(Loop, GoesOnInARealSpaceWhereItWasStopped) {
  session::Session session = plain_session(kReal);
  session.budget.trials = 9;
  FakeRunner runner([&](const space::Configuration& c) { return measured(session, real_hill(c)); });
  StoppingObserver whole;
  const std::vector<std::string> asked = texts(run(session, whole, runner).history);
  for (const int stop_after : {2, 5, 8}) {
    std::filesystem::remove_all(directory());
    StoppingObserver first(stop_after);
    run(session, first, runner);
    StoppingObserver second;
    EXPECT_EQ(texts(run(session, second, runner).history), asked) << "stopped after " << stop_after;
  }
}

}  // namespace krigtune::large_space_test
