#include "compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "search/fixtures.h"

namespace krigtune::compare_test {

// The strategies that continue until every configuration was tried.
const std::vector<search::StrategyKind> kOfAllConfigurations{
    search::StrategyKind::kBayes, search::StrategyKind::kRandom, search::StrategyKind::kGrid};

class Compare : public testing::Test {
 protected:
  static double speed(const space::Configuration& c) {
    const double a = space::as_number(*c.find("a"));
    const double b = space::as_number(*c.find("b"));
    return 100.0 * std::exp(-0.05 * (a - 7) * (a - 7) - 0.05 * (b - 2) * (b - 2));
  }
  compare::Comparison run(const session::Session& session, const compare::CompareOptions& options) const {
    const Problem problem(session);
    return compare::compare(
        problem.session, problem.candidates, options,
        [&] {
          return std::make_unique<FakeRunner>(
              [&](const space::Configuration& c) { return measured(session, speed(c)); });
        },
        clock_);
  }
  session::Session session_ = plain_session(R"({"a": {"min": 0, "max": 9}, "b": {"min": 0, "max": 9}})");
  ManualClock clock_;
};

TEST_F(Compare, GivesEachStrategyTheSameBudgetAndSeeds) {
  session_.budget.patience = 1;  // stop rules are off
  compare::CompareOptions options;
  options.strategies = kOfAllConfigurations;
  options.seeds = 3;
  options.seed = 10;
  options.trials = 12;
  const compare::Comparison comparison = run(session_, options);
  EXPECT_EQ(comparison.trials.size(), 3u * 3u * 12u);
  std::set<std::uint64_t> seeds;
  for (const compare::ComparedTrial& compared : comparison.trials) seeds.insert(compared.seed);
  EXPECT_EQ(seeds, (std::set<std::uint64_t>{10, 11, 12}));
  ASSERT_EQ(comparison.summary.size(), 3u);
  EXPECT_EQ(comparison.summary[0].strategy, search::StrategyKind::kBayes);
  EXPECT_FALSE(comparison.optimum_is_known);
}

TEST_F(Compare, IsTheSameWithSeveralRunsAtATime) {
  compare::CompareOptions options;
  options.seeds = 4;
  options.trials = 8;
  const compare::Comparison one = run(session_, options);
  options.jobs = 3;
  const compare::Comparison three = run(session_, options);
  ASSERT_EQ(one.trials.size(), three.trials.size());
  for (std::size_t i = 0; i < one.trials.size(); ++i) {
    EXPECT_EQ(one.trials[i].value, three.trials[i].value);
    EXPECT_EQ(one.trials[i].seed, three.trials[i].seed);
  }
}

TEST_F(Compare, RunsAStrategyWithoutChanceOnce) {
  session_.grid.order = session::GridOrder::kSession;
  compare::CompareOptions options;
  options.strategies = {search::StrategyKind::kGrid};
  options.seeds = 5;
  options.trials = 7;
  const compare::Comparison comparison = run(session_, options);
  EXPECT_EQ(comparison.trials.size(), 7u);
  EXPECT_EQ(comparison.summary[0].seeds, 1);
}

TEST_F(Compare, CountsTheBaselineAsTrialZeroOfEveryRun) {
  session_.baseline = space::Configuration{{"a", std::int64_t{0}}, {"b", std::int64_t{9}}};
  compare::CompareOptions options;
  options.strategies = kOfAllConfigurations;
  options.seeds = 2;
  options.trials = 5;
  const compare::Comparison comparison = run(session_, options);
  EXPECT_EQ(comparison.trials.size(), 3u * 2u * 5u);
  for (const compare::ComparedTrial& compared : comparison.trials) {
    if (compared.trial != 0) continue;
    EXPECT_EQ(compared.value, speed(*session_.baseline));
  }
}

TEST_F(Compare, EndsARunWhenTheSpaceIsExhausted) {
  compare::CompareOptions options;
  options.strategies = {search::StrategyKind::kRandom};
  options.seeds = 1;
  options.trials = 500;
  EXPECT_EQ(run(session_, options).trials.size(), 100u);
}

TEST_F(Compare, KeepsEveryClosedTrialWhenItIsStopped) {
  compare::CompareOptions options;
  options.strategies = {search::StrategyKind::kRandom, search::StrategyKind::kGrid};
  options.seeds = 2;
  options.trials = 10;
  std::atomic<bool> stop{false};
  const Problem problem(session_);
  const auto make = [&] {
    return std::make_unique<FakeRunner>([&](const space::Configuration& c) { return measured(session_, speed(c)); });
  };
  const compare::Comparison comparison = compare::compare(
      problem.session, problem.candidates, options, make, clock_,
      [&](const compare::CompareState& state) { stop = state.trials_done >= 14; }, &stop);
  EXPECT_EQ(comparison.trials.size(), 14u);
  ASSERT_EQ(comparison.summary.size(), 1u);
  EXPECT_EQ(comparison.summary[0].seeds, 1);
  EXPECT_EQ(comparison.cut_short.size(), 3u);
}

TEST_F(Compare, GoesOnInItsRunDirectoriesWhereTrialsLeaveFiles) {
  session_.runner = runner::CommandSpec();
  const TemporaryDirectory directory;
  compare::CompareOptions options;
  options.strategies = {search::StrategyKind::kRandom};
  options.seeds = 2;
  options.trials = 6;
  options.directory = directory.path();
  const Problem problem(session_);
  FakeRunner runner([&](const space::Configuration& c) { return measured(session_, speed(c)); });
  std::atomic<bool> stop{false};
  const auto until = [&](int trials) {
    return [&stop, trials](const compare::CompareState& state) { stop = state.trials_done >= trials; };
  };
  const compare::Comparison cut =
      compare::compare(problem.session, problem.candidates, options, sharing(runner), clock_, until(8), &stop);
  EXPECT_EQ(cut.trials.size(), 8u);
  EXPECT_EQ(cut.cut_short.size(), 1u);
  stop = false;
  const compare::Comparison whole =
      compare::compare(problem.session, problem.candidates, options, sharing(runner), clock_);
  EXPECT_EQ(runner.asked.size(), 12u) << "nothing is measured twice";
  options.directory = directory / "at_once";
  const compare::Comparison at_once =
      compare::compare(problem.session, problem.candidates, options, sharing(runner), clock_);
  ASSERT_EQ(whole.trials.size(), at_once.trials.size());
  for (std::size_t i = 0; i < whole.trials.size(); ++i) {
    EXPECT_EQ(whole.trials[i].configuration, at_once.trials[i].configuration) << i;
  }
}

TEST_F(Compare, PassesOnWhatARunThrows) {
  compare::CompareOptions options;
  options.jobs = 2;
  const Problem problem(session_);
  const auto no_runner = []() -> std::unique_ptr<trial::Runner> { throw std::runtime_error("no runner"); };
  EXPECT_THROW(compare::compare(problem.session, problem.candidates, options, no_runner, clock_), std::runtime_error);
}

TEST_F(Compare, KnowsTheOptimumOfAReplayedTable) {
  const TemporaryDirectory directory;
  std::string table = "a,b,value,status\n";
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 6; ++b) {
      const bool ok = a + b < 9;
      table +=
          std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(10 + a + b) + (ok ? ",ok\n" : ",oom\n");
    }
  }
  write_atomically(directory / "t.csv", table);
  const session::Session session = session::read_session(
      parse_json(R"({"space": {"a": {"min": 0, "max": 9}, "b": {"min": 0, "max": 9}}, "objective": {"metric": "speed",
                 "direction": "maximize"}, "runner": {"kind": "replay", "table": "t.csv", "value": "value",
                 "status": "status"}})",
                 "s"),
      "s", directory.path());
  const Problem problem(session);
  compare::CompareOptions options;
  options.strategies = kOfAllConfigurations;
  options.seeds = 3;
  options.trials = 36;
  const compare::Comparison comparison = compare::compare(
      problem.session, problem.candidates, options, [&] { return runner::make_replay_runner(*session.table); }, clock_);
  EXPECT_TRUE(comparison.optimum_is_known);
  EXPECT_EQ(comparison.optimum, 18.0);
  for (const compare::StrategySummary& summary : comparison.summary) {
    EXPECT_LE(summary.trials_to_1pct.q75, 36.0) << search::to_string(summary.strategy);
  }
  EXPECT_LT(comparison.summary[0].trials_to_1pct.median, comparison.summary[1].trials_to_1pct.median);
}

}  // namespace krigtune::compare_test
