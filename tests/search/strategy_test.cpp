#include "search/strategies/strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "search/fixtures.h"

namespace krigtune::strategy_test {

constexpr const char* kSpace = R"({"a": [0, 1, 2, 3], "b": {"min": 1, "max": 5}, "c": ["red", "blue"]})";  // 40

// A hill with its maximum at a = 2, b = 4, blue.
double hill(const space::Configuration& configuration) {
  const double a = space::as_number(*configuration.find("a"));
  const double b = space::as_number(*configuration.find("b"));
  const double colour = std::get<std::string>(*configuration.find("c")) == "blue" ? 1.2 : 1.0;
  return 100.0 * colour * std::exp(-0.1 * (a - 2) * (a - 2) - 0.05 * (b - 4) * (b - 4));
}

class EveryStrategy : public testing::TestWithParam<search::StrategyKind> {};

TEST_P(EveryStrategy, AsksEveryConfigurationOnceAndThenNothing) {
  const Problem problem(plain_session(kSpace));
  const search::History history = problem.drive(
      GetParam(), 3, 100, [&](const space::Configuration& c) { return measured(problem.session, hill(c)); });
  const std::vector<std::string> asked = texts(history);
  const bool ends_before = GetParam() == search::StrategyKind::kStagewise;
  EXPECT_EQ(asked.size() < 40u, ends_before);
  EXPECT_EQ(std::set<std::string>(asked.begin(), asked.end()).size(), asked.size());
  const auto strategy = problem.strategy(GetParam(), 3);
  EXPECT_FALSE(strategy->ask(history));
  EXPECT_EQ(strategy->why_idle(history), asked.size() == 40u ? search::Idle::kAllTried : search::Idle::kNoProposal);
  EXPECT_EQ(strategy->left_out(history).empty(), asked.size() == 40u);
}

TEST_P(EveryStrategy, AsksTheSameInANewTunerOfTheSameHistory) {
  const Problem problem(plain_session(kSpace));
  const auto answer = [&](const space::Configuration& c) -> trial::Outcome {
    if (space::as_number(*c.find("a")) == 3 && space::as_number(*c.find("b")) > 3) return trial::OutOfMemory{};
    return measured(problem.session, hill(c));
  };
  const search::History whole = problem.drive(GetParam(), 11, 20, answer);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const search::History prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
    EXPECT_EQ(texts(problem.drive(GetParam(), 11, 20, answer, prefix)), texts(whole)) << "resumed after " << cut;
  }
}

TEST_P(EveryStrategy, NeverAsksWhatIsPending) {
  const Problem problem(plain_session(kSpace));
  const auto strategy = problem.strategy(GetParam(), 5);
  const ManualClock clock;
  run::Tuner tuner({problem.session, problem.candidates, *strategy, clock});
  std::set<std::string> asked;
  for (int i = 0; i < 40; ++i) {
    const std::optional<journal::Trial> trial = tuner.ask();
    if (GetParam() == search::StrategyKind::kStagewise && !trial) {
      EXPECT_EQ(strategy->why_idle(tuner.history()), search::Idle::kWaits);
      return;
    }
    ASSERT_TRUE(trial);
    EXPECT_TRUE(asked.insert(trial->proposal.configuration.text()).second) << trial->proposal.configuration.text();
    // Only every third trial gets its result; the others stay pending.
    if (i % 3 == 0) tuner.tell(trial->number, measured(problem.session, hill(trial->proposal.configuration)), 0.0);
  }
  EXPECT_FALSE(tuner.ask());
}

TEST_P(EveryStrategy, AsksAnInterruptedConfigurationAgainAndGoesOnAsIfItHadNotBeen) {
  const Problem problem(plain_session(kSpace));
  const auto answer = [&](const space::Configuration& c) { return measured(problem.session, hill(c)); };
  const search::History whole = problem.drive(GetParam(), 7, 12, answer);
  search::History broken(whole.begin(), whole.begin() + 6);
  broken.back().outcome = trial::Failed{trial::FailureReason::kInterrupted, 0, ""};
  const search::History resumed = problem.drive(GetParam(), 7, 13, answer, broken);
  std::vector<std::string> counted;
  for (const journal::Trial& trial : resumed) {
    if (search::counts(trial)) counted.push_back(trial.proposal.configuration.text());
  }
  EXPECT_EQ(counted, texts(whole));
}

TEST_P(EveryStrategy, HasANameThatReadsBack) {
  EXPECT_EQ(search::strategy_kind_from(search::to_string(GetParam()), "--strategy"), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, testing::ValuesIn(search::all_strategies()),
                         [](const auto& param_info) { return to_string(param_info.param); });

TEST(StrategyKind, SuggestsTheNearestName) {
  try {
    search::strategy_kind_from("bays", "--strategy");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "--strategy: unknown strategy 'bays'; did you mean 'bayes'?");
  }
}

TEST(RandomStrategy, IsUniform) {
  const Problem problem(plain_session(R"({"a": [0, 1, 2, 3]})"));
  std::map<std::string, int> counted;
  constexpr int kSeeds = 4000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    ++counted[problem.strategy(search::StrategyKind::kRandom, static_cast<std::uint64_t>(seed))
                  ->ask({})
                  ->configuration.text()];
  }
  // Each count is binomial with mean 1000 and standard deviation 27; four standard deviations have a probability of
  // 5e-5.
  for (const auto& [text, count] : counted) EXPECT_LE(std::abs(count - 1000), 110) << text;
  EXPECT_EQ(counted.size(), 4u);
}

TEST(GridStrategy, CoversAnEvenSubGridThatFitsTheBudgetFirst) {
  // 9 x 9 values and a budget of 30: 5 x 5 fits, 6 x 5 as well, 6 x 6 does not.
  const Problem problem(plain_session(R"({"a": {"min": 0, "max": 8}, "b": {"min": 0, "max": 8}})"));
  const search::History history = problem.drive(
      search::StrategyKind::kGrid, 2, 30, [&](const space::Configuration&) { return measured(problem.session, 1.0); });
  std::set<std::string> a_values;
  std::set<std::string> b_values;
  for (const journal::Trial& trial : history) {
    a_values.insert(space::to_string(*trial.proposal.configuration.find("a")));
    b_values.insert(space::to_string(*trial.proposal.configuration.find("b")));
  }
  EXPECT_EQ(history.size(), 30u);
  EXPECT_EQ(a_values.size(), 6u);
  EXPECT_EQ(b_values, (std::set<std::string>{"0", "2", "4", "6", "8"}));
  EXPECT_TRUE(a_values.count("0") == 1 && a_values.count("8") == 1);
}

TEST(GridStrategy, DrawsItsOrderFromTheSeed) {
  const Problem problem(plain_session(kSpace));
  const auto answer = [&](const space::Configuration&) { return measured(problem.session, 1.0); };
  const std::vector<std::string> one = texts(problem.drive(search::StrategyKind::kGrid, 1, 12, answer));
  const std::vector<std::string> two = texts(problem.drive(search::StrategyKind::kGrid, 2, 12, answer));
  EXPECT_NE(one, two);
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()), std::set<std::string>(two.begin(), two.end()));
}

TEST(GridStrategy, WalksTheFullFactorialInTheSessionsOrder) {
  session::Session session = plain_session(R"({"a": [1, 2], "b": [3, 4]})");
  session.grid.order = session::GridOrder::kSession;
  const Problem problem(std::move(session));
  const auto answer = [&](const space::Configuration&) { return measured(problem.session, 1.0); };
  EXPECT_EQ(texts(problem.drive(search::StrategyKind::kGrid, 9, 10, answer)),
            (std::vector<std::string>{"a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"}));
  EXPECT_FALSE(search::depends_on_seed(search::StrategyKind::kGrid, problem.session));
}

}  // namespace krigtune::strategy_test
