#include "krigtune/tuner/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fixtures.h"

namespace krigtune {
namespace {

// Those that go on until everything was tried.
const std::vector<StrategyKind> kOfAllConfigurations{StrategyKind::kBayes, StrategyKind::kRandom, StrategyKind::kGrid};

ComparedTrial row(StrategyKind strategy, std::uint64_t seed, int trial, std::optional<double> value,
                  const char* status = "ok") {
  ComparedTrial compared;
  compared.strategy = strategy;
  compared.seed = seed;
  compared.trial = trial;
  compared.value = value;
  compared.status = status;
  return compared;
}

// Three seeds of random and one of grid, which ended early; the optimum is 100, the budget 5.
Comparison worked_out_by_hand() {
  constexpr StrategyKind kRandom = StrategyKind::kRandom;
  constexpr StrategyKind kGrid = StrategyKind::kGrid;
  Comparison comparison;
  comparison.trials = {row(kRandom, 1, 0, std::nullopt, "oom"),
                       row(kRandom, 1, 1, 80.0),
                       row(kRandom, 1, 2, 100.0),
                       row(kRandom, 1, 3, 90.0),
                       row(kRandom, 1, 4, 20.0),
                       row(kRandom, 2, 0, 95.0),
                       row(kRandom, 2, 1, std::nullopt, "failed"),
                       row(kRandom, 2, 2, std::nullopt, "oom"),
                       row(kRandom, 2, 3, 96.0),
                       row(kRandom, 2, 4, 96.0),
                       row(kRandom, 3, 0, 50.0),
                       row(kRandom, 3, 1, 99.0),
                       row(kRandom, 3, 2, 98.0),
                       row(kRandom, 3, 3, 1.0),
                       row(kRandom, 3, 4, 1.0),
                       row(kGrid, 1, 0, 60.0),
                       row(kGrid, 1, 1, 70.0)};
  comparison.optimum = 100.0;
  comparison.optimum_is_known = true;
  summarise(comparison, {"speed", true, "speed"}, 5);
  return comparison;
}

TEST(Summary, FillsTheRegretOfEachTrial) {
  const std::vector<ComparedTrial> trials = worked_out_by_hand().trials;
  EXPECT_EQ(trials[0].regret, 1.0);  // before the first ok trial
  EXPECT_FALSE(trials[0].best_so_far);
  EXPECT_NEAR(trials[1].regret, 0.2, 1e-15);
  EXPECT_EQ(trials[4].best_so_far, 100.0);
  EXPECT_EQ(trials[4].regret, 0.0);
  EXPECT_EQ(trials[6].best_so_far, 95.0);
}

TEST(Summary, IsWhatOneWorksOutByHand) {
  const Comparison comparison = worked_out_by_hand();
  ASSERT_EQ(comparison.summary.size(), 2u);
  const StrategySummary& random = comparison.summary[0];
  EXPECT_EQ(random.seeds, 3);
  // Trials to 5 %: 3, 1 (95 is at the edge), 2. To 1 %: 3, 6 (never), 2 (99 is at the edge).
  EXPECT_EQ(random.trials_to_5pct.median, 2.0);
  EXPECT_EQ(random.trials_to_5pct.mean, 2.0);
  EXPECT_EQ(random.trials_to_5pct.q25, 1.5);
  EXPECT_EQ(random.trials_to_5pct.q75, 2.5);
  EXPECT_EQ(random.trials_to_1pct.median, 3.0);
  EXPECT_NEAR(random.trials_to_1pct.mean, 11.0 / 3.0, 1e-15);
  EXPECT_EQ(random.trials_to_1pct.q25, 2.5);
  EXPECT_EQ(random.trials_to_1pct.q75, 4.5);
  EXPECT_EQ(random.failed_first_20_mean, 1.0);
  ASSERT_TRUE(random.best_over_optimum_at[0]);
  EXPECT_NEAR(*random.best_over_optimum_at[0], (1.0 + 0.96 + 0.99) / 3.0, 1e-15);
  EXPECT_FALSE(random.best_over_optimum_at[1]);  // ten trials are beyond the budget

  const StrategySummary& grid = comparison.summary[1];
  EXPECT_EQ(grid.seeds, 1);
  EXPECT_EQ(grid.trials_to_5pct.median, 6.0);
  EXPECT_NEAR(*grid.best_over_optimum_at[0], 0.7, 1e-15);  // ended after two: keeps its last
}

TEST(Summary, MeasuresRegretTheOtherWayRoundWhenMinimised) {
  Comparison comparison;
  comparison.trials = {row(StrategyKind::kGrid, 1, 0, 8.0), row(StrategyKind::kGrid, 1, 1, 4.0)};
  comparison.optimum = 2.0;
  comparison.optimum_is_known = true;
  summarise(comparison, {"cost", false, "cost"}, 2);
  EXPECT_NEAR(comparison.trials[0].regret, 0.75, 1e-15);
  EXPECT_NEAR(comparison.trials[1].regret, 0.5, 1e-15);
}

TEST(Summary, TakesTheBestOfAllRunsWhereTheOptimumIsNotKnown) {
  Comparison comparison;
  comparison.trials = {row(StrategyKind::kBayes, 1, 0, 8.0), row(StrategyKind::kGrid, 1, 0, 10.0)};
  summarise(comparison, {"speed", true, "speed"}, 1);
  EXPECT_EQ(comparison.optimum, 10.0);
  EXPECT_NEAR(comparison.trials[0].regret, 0.2, 1e-15);
}

class Compare : public testing::Test {
 protected:
  static double speed(const Configuration& c) {
    const double a = as_number(*c.find("a"));
    const double b = as_number(*c.find("b"));
    return 100.0 * std::exp(-0.05 * (a - 7) * (a - 7) - 0.05 * (b - 2) * (b - 2));
  }
  Comparison run(const Session& session, const CompareOptions& options) const {
    const Problem problem(session);
    return compare(
        problem.session, problem.candidates, options,
        [&] {
          return std::make_unique<FakeRunner>([&](const Configuration& c) { return measured(session, speed(c)); });
        },
        clock_);
  }
  Session session_ = plain_session(R"({"a": {"min": 0, "max": 9}, "b": {"min": 0, "max": 9}})");
  ManualClock clock_;
};

TEST_F(Compare, GivesEachStrategyTheSameBudgetAndSeeds) {
  session_.budget.patience = 1;  // stop rules are off
  CompareOptions options;
  options.strategies = kOfAllConfigurations;
  options.seeds = 3;
  options.seed = 10;
  options.trials = 12;
  const Comparison comparison = run(session_, options);
  EXPECT_EQ(comparison.trials.size(), 3u * 3u * 12u);
  std::set<std::uint64_t> seeds;
  for (const ComparedTrial& compared : comparison.trials) seeds.insert(compared.seed);
  EXPECT_EQ(seeds, (std::set<std::uint64_t>{10, 11, 12}));
  ASSERT_EQ(comparison.summary.size(), 3u);
  EXPECT_EQ(comparison.summary[0].strategy, StrategyKind::kBayes);
  EXPECT_FALSE(comparison.optimum_is_known);
}

TEST_F(Compare, IsTheSameWithSeveralRunsAtATime) {
  CompareOptions options;
  options.seeds = 4;
  options.trials = 8;
  const Comparison one = run(session_, options);
  options.jobs = 3;
  const Comparison three = run(session_, options);
  ASSERT_EQ(one.trials.size(), three.trials.size());
  for (std::size_t i = 0; i < one.trials.size(); ++i) {
    EXPECT_EQ(one.trials[i].value, three.trials[i].value);
    EXPECT_EQ(one.trials[i].seed, three.trials[i].seed);
  }
}

TEST_F(Compare, RunsAStrategyWithoutChanceOnce) {
  session_.grid.order = GridOrder::kSession;
  CompareOptions options;
  options.strategies = {StrategyKind::kGrid};
  options.seeds = 5;
  options.trials = 7;
  const Comparison comparison = run(session_, options);
  EXPECT_EQ(comparison.trials.size(), 7u);
  EXPECT_EQ(comparison.summary[0].seeds, 1);
}

TEST_F(Compare, CountsTheBaselineAsTrialZeroOfEveryRun) {
  session_.baseline = Configuration{{"a", std::int64_t{0}}, {"b", std::int64_t{9}}};
  CompareOptions options;
  options.strategies = kOfAllConfigurations;
  options.seeds = 2;
  options.trials = 5;
  const Comparison comparison = run(session_, options);
  EXPECT_EQ(comparison.trials.size(), 3u * 2u * 5u);
  for (const ComparedTrial& compared : comparison.trials) {
    if (compared.trial != 0) continue;
    EXPECT_EQ(compared.value, speed(*session_.baseline));
  }
}

TEST_F(Compare, EndsARunWhenTheSpaceIsExhausted) {
  CompareOptions options;
  options.strategies = {StrategyKind::kRandom};
  options.seeds = 1;
  options.trials = 500;
  EXPECT_EQ(run(session_, options).trials.size(), 100u);
}

TEST_F(Compare, PassesOnWhatARunThrows) {
  CompareOptions options;
  options.jobs = 2;
  const Problem problem(session_);
  const auto no_runner = []() -> std::unique_ptr<Runner> { throw std::runtime_error("no runner"); };
  EXPECT_THROW(compare(problem.session, problem.candidates, options, no_runner, clock_), std::runtime_error);
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
  const Session session = read_session(
      parse_json(R"({"space": {"a": {"min": 0, "max": 9}, "b": {"min": 0, "max": 9}}, "objective": {"metric": "speed",
                 "direction": "maximize"}, "runner": {"kind": "replay", "table": "t.csv", "value": "value",
                 "status": "status"}})",
                 "s"),
      "s", directory.path());
  const Problem problem(session);
  CompareOptions options;
  options.strategies = kOfAllConfigurations;
  options.seeds = 3;
  options.trials = 36;
  const Comparison comparison = compare(
      problem.session, problem.candidates, options, [&] { return make_replay_runner(*session.table); }, clock_);
  EXPECT_TRUE(comparison.optimum_is_known);
  EXPECT_EQ(comparison.optimum, 18.0);
  for (const StrategySummary& summary : comparison.summary) {
    EXPECT_LE(summary.trials_to_1pct.q75, 36.0) << to_string(summary.strategy);
  }
  EXPECT_LT(comparison.summary[0].trials_to_1pct.median, comparison.summary[1].trials_to_1pct.median);
}

}  // namespace
}  // namespace krigtune
