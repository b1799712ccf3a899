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

// A table's truth: a 100, b 90. Each is measured with luck.
TEST(Summary, JudgesARunByTheConfigurationThatItNamesNotByItsLuckiestMeasurement) {
  constexpr StrategyKind kRandom = StrategyKind::kRandom;
  Comparison comparison;
  comparison.trials = {row(kRandom, 1, 0, 96.0), row(kRandom, 1, 1, 99.0), row(kRandom, 1, 2, 85.0)};
  const char* configurations[] = {"a", "b", "b"};
  for (std::size_t i = 0; i < 3; ++i) {
    comparison.trials[i].configuration = configurations[i];
    comparison.trials[i].worth = i == 0 ? 100.0 : 90.0;
  }
  comparison.optimum = 100.0;
  comparison.optimum_is_known = true;
  summarise(comparison, {"speed", true, "speed"}, 3);
  EXPECT_EQ(comparison.trials[0].regret, 0.0);
  EXPECT_NEAR(comparison.trials[1].regret, 0.1, 1e-15) << "b looks better, and is not";
  EXPECT_EQ(comparison.trials[2].regret, 0.0) << "measured again, b falls behind: (99 + 85) / 2 < 96";
}

TEST(Summary, TakesTheMeanOverAllRunsForTheWorthOfAConfigurationThatNoTableKnows) {
  Comparison comparison;
  comparison.trials = {row(StrategyKind::kBayes, 1, 0, 110.0), row(StrategyKind::kGrid, 1, 0, 90.0),
                       row(StrategyKind::kGrid, 1, 1, 102.0)};
  for (std::size_t i = 0; i < 3; ++i) comparison.trials[i].configuration = i < 2 ? "a" : "b";
  summarise(comparison, {"speed", true, "speed"}, 2);
  EXPECT_EQ(comparison.optimum, 102.0);
  EXPECT_EQ(comparison.trials[0].best_so_far, 100.0);
  EXPECT_NEAR(comparison.trials[0].regret, 1.0 - 100.0 / 102.0, 1e-15);
}

TEST(Summary, LeavesOutRunsThatWereCutShort) {
  Comparison comparison;
  comparison.trials = {row(StrategyKind::kBayes, 1, 0, 8.0), row(StrategyKind::kBayes, 2, 0, 4.0),
                       row(StrategyKind::kGrid, 1, 0, 10.0)};
  comparison.cut_short = {{StrategyKind::kBayes, 2}};
  summarise(comparison, {"speed", true, "speed"}, 1);
  EXPECT_EQ(comparison.summary[0].seeds, 1);
  EXPECT_EQ(comparison.runs.size(), 2u);
  EXPECT_EQ(comparison.trials.size(), 3u) << "their trials stay";
  EXPECT_NEAR(comparison.trials[1].regret, 0.6, 1e-15);
}

TEST(Summary, SumsTheSecondsUntilTheTargetAndOfTheWholeRun) {
  Comparison comparison;
  for (int i = 0; i < 4; ++i) {
    comparison.trials.push_back(row(StrategyKind::kBayes, 1, i, i == 2 ? 100.0 : 50.0));
    comparison.trials.back().wall_s = 2.0;
  }
  summarise(comparison, {"speed", true, "speed"}, 4);
  EXPECT_EQ(comparison.summary[0].seconds_to_5pct.median, 6.0);
  EXPECT_EQ(comparison.summary[0].seconds.median, 8.0);
}

TEST(RegretCurve, HasTheMedianAndTheQuartilesAndARunThatEndedKeepsItsLast) {
  Comparison comparison;
  const auto add = [&](std::uint64_t seed, const std::vector<double>& regrets) {
    for (std::size_t i = 0; i < regrets.size(); ++i) {
      comparison.trials.push_back(row(StrategyKind::kBayes, seed, static_cast<int>(i), 1.0));
      comparison.trials.back().regret = regrets[i];
    }
  };
  add(1, {0.9, 0.5, 0.1});
  add(2, {0.8, 0.3});
  add(3, {0.2, 0.2, 0.2});
  const std::vector<SeedStatistics> curve = regret_curve(comparison, StrategyKind::kBayes, 3);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].median, 0.8);
  EXPECT_EQ(curve[1].median, 0.3);
  EXPECT_EQ(curve[2].median, 0.2);
  EXPECT_NEAR(curve[1].q75, 0.4, 1e-15);
  EXPECT_TRUE(regret_curve(comparison, StrategyKind::kGrid, 3).empty());
}

// Every one of the 2^n ways to give signs to the ranks.
double signed_rank_by_enumeration(const std::vector<double>& differences) {
  const std::size_t count = differences.size();
  std::vector<double> ranks(count);
  for (std::size_t i = 0; i < count; ++i) {
    int below = 0;
    int equal = 0;
    for (const double other : differences) {
      below += std::abs(other) < std::abs(differences[i]) ? 1 : 0;
      equal += std::abs(other) == std::abs(differences[i]) ? 1 : 0;
    }
    ranks[i] = below + 0.5 * (equal + 1);
  }
  double observed = 0.0;
  for (std::size_t i = 0; i < count; ++i) observed += differences[i] > 0.0 ? ranks[i] : 0.0;
  double below = 0.0;
  double above = 0.0;
  for (std::size_t signs = 0; signs < std::size_t{1} << count; ++signs) {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum += (signs >> i & 1) != 0 ? ranks[i] : 0.0;
    below += sum <= observed ? 1.0 : 0.0;
    above += sum >= observed ? 1.0 : 0.0;
  }
  return std::min(1.0, 2.0 * std::min(below, above) / static_cast<double>(std::size_t{1} << count));
}

// Differences 1 ... n, those named negative: their ranks' sum is the statistic.
std::vector<double> ranked(int count, const std::set<int>& negative) {
  std::vector<double> differences;
  for (int i = 1; i <= count; ++i) differences.push_back(negative.count(i) > 0 ? -i : i);
  return differences;
}

TEST(SignedRank, HasTheTabulatedCriticalValues) {
  // Two-sided 5 %: n = 6: 0, 8: 3, 10: 8, 15: 25, 20: 52 (Wilcoxon, Katti & Wilcox 1970; in every textbook). At the
  // critical value p <= 0.05, one above it p > 0.05.
  EXPECT_LE(signed_rank_p_value(ranked(6, {})), 0.05);
  EXPECT_GT(signed_rank_p_value(ranked(6, {1})), 0.05);
  EXPECT_LE(signed_rank_p_value(ranked(8, {3})), 0.05);
  EXPECT_GT(signed_rank_p_value(ranked(8, {4})), 0.05);
  EXPECT_LE(signed_rank_p_value(ranked(10, {8})), 0.05);
  EXPECT_GT(signed_rank_p_value(ranked(10, {9})), 0.05);
  EXPECT_LE(signed_rank_p_value(ranked(15, {12, 13})), 0.05);
  EXPECT_GT(signed_rank_p_value(ranked(15, {12, 14})), 0.05);
  EXPECT_LE(signed_rank_p_value(ranked(20, {16, 17, 19})), 0.05);
  EXPECT_GT(signed_rank_p_value(ranked(20, {16, 18, 19})), 0.05);
  // n = 5: 2 / 2^5, exactly.
  EXPECT_EQ(signed_rank_p_value(ranked(5, {})), 0.0625);
}

TEST(SignedRank, IsExactWithTies) {
  const std::vector<double> tied = {1, 1, -1, 2, 2, -2, 3, 5, 5, 5, -1, 4};
  EXPECT_NEAR(signed_rank_p_value(tied), signed_rank_by_enumeration(tied), 1e-14);
  const std::vector<double> even = {1, -1, 2, -2};
  EXPECT_EQ(signed_rank_p_value(even), 1.0);
}

TEST(SignedRank, LeavesOutWhatDoesNotDiffer) {
  EXPECT_EQ(signed_rank_p_value({0, 3, 0, 1, 2, 0}), signed_rank_p_value({3, 1, 2}));
  EXPECT_EQ(signed_rank_p_value({0, 0}), 1.0);
  EXPECT_EQ(signed_rank_p_value({}), 1.0);
}

TEST(SignedRank, OfManyPairsGoesOverIntoTheNormalLimit) {
  std::vector<double> differences;
  for (int i = 1; i <= 400; ++i) differences.push_back(i % 20 < 9 ? -i : i);
  const double counted = signed_rank_p_value(differences);
  differences.push_back(0.5);  // the least rank: next to nothing changes but the method
  const double normal = signed_rank_p_value(differences);
  EXPECT_TRUE(counted > 0.001 && counted < 0.2) << counted;
  EXPECT_LE(std::abs(normal / counted - 1.0), 0.02);
}

TEST(SignTest, IsTheBinomialTail) {
  EXPECT_NEAR(sign_test_p_value(9, 1), 2.0 * 11.0 / 1024.0, 1e-15);
  EXPECT_NEAR(sign_test_p_value(0, 5), 2.0 / 32.0, 1e-15);
  EXPECT_EQ(sign_test_p_value(4, 4), 1.0);
  EXPECT_EQ(sign_test_p_value(0, 0), 1.0);
}

TEST(RatioOfMeans, HasAnIntervalThatIsThatOfTheDeltaMethod) {
  // Independent columns of mean 10 and 5, variances 2 each: log ratio has the variance 2/n (1/100 + 1/25).
  std::vector<double> numerators;
  std::vector<double> denominators;
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    numerators.push_back(10.0 + (i % 5 - 2));
    denominators.push_back(5.0 + (i / 5 % 5 - 2));
  }
  const RatioInterval interval = ratio_of_means(numerators, denominators, 1);
  EXPECT_NEAR(interval.ratio, 2.0, 1e-14);
  const double stddev = std::sqrt(2.0 / kCount * (1.0 / 100.0 + 1.0 / 25.0));
  // 10^4 resamples know a 2.5 % quantile to some 2 % of the stddev; 6 % allow for the skew as well.
  EXPECT_LE(std::abs(std::log(interval.lower_95 / 2.0) / stddev + 1.96), 0.06);
  EXPECT_LE(std::abs(std::log(interval.upper_95 / 2.0) / stddev - 1.96), 0.06);
}

TEST(PairedComparison, PairsTheRunsOfTheSameSeed) {
  const PairedRuns first{{1, 2, 3}, {2.0, 3.0, 4.0}};
  const PairedRuns other{{3, 2, 4}, {8.0, 3.0, 1.0}};
  const auto pair = paired_comparison(first, other, 7);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->pairs, 2);
  EXPECT_EQ(pair->first_mean, 3.5);
  EXPECT_EQ(pair->other_mean, 5.5);
  EXPECT_EQ(pair->wins, 1);
  EXPECT_EQ(pair->ties, 1);
  EXPECT_EQ(pair->other_unreached, 1);
  EXPECT_EQ(pair->ratio, 5.5 / 3.5);
}

TEST(PairedComparison, PairsTheOneRunWithEachOfTheOther) {
  const auto pair = paired_comparison({{1, 2, 3, 4}, {2.0, 2.0, 4.0, 4.0}}, {{1}, {6.0}}, 7);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->pairing, Pairing::kOneWithEach);
  EXPECT_EQ(pair->pairs, 4);
  EXPECT_EQ(pair->ratio, 2.0);
  EXPECT_EQ(pair->wins, 4);
  EXPECT_TRUE(*pair->lower_95 >= 1.5 && *pair->upper_95 <= 3.0);
  const auto ones = paired_comparison({{1}, {2.0}}, {{1}, {6.0}}, 7);
  EXPECT_EQ(ones->pairing, Pairing::kOneWithTheOne);
  EXPECT_FALSE(ones->lower_95);
  EXPECT_FALSE(paired_comparison({{1, 2}, {1.0, 1.0}}, {{3, 4}, {1.0, 1.0}}, 7));
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

TEST_F(Compare, KeepsEveryClosedTrialWhenItIsStopped) {
  CompareOptions options;
  options.strategies = {StrategyKind::kRandom, StrategyKind::kGrid};
  options.seeds = 2;
  options.trials = 10;
  std::atomic<bool> stop{false};
  const Problem problem(session_);
  const auto make = [&] {
    return std::make_unique<FakeRunner>([&](const Configuration& c) { return measured(session_, speed(c)); });
  };
  const Comparison comparison = compare(
      problem.session, problem.candidates, options, make, clock_,
      [&](const CompareState& state) { stop = state.trials_done >= 14; }, &stop);
  EXPECT_EQ(comparison.trials.size(), 14u);
  ASSERT_EQ(comparison.summary.size(), 1u);
  EXPECT_EQ(comparison.summary[0].seeds, 1);
  EXPECT_EQ(comparison.cut_short.size(), 3u);
}

TEST_F(Compare, GoesOnInItsRunDirectoriesWhereTrialsLeaveFiles) {
  session_.runner.kind = RunnerKind::kCommand;
  const TemporaryDirectory directory;
  CompareOptions options;
  options.strategies = {StrategyKind::kRandom};
  options.seeds = 2;
  options.trials = 6;
  options.directory = directory.path();
  const Problem problem(session_);
  FakeRunner runner([&](const Configuration& c) { return measured(session_, speed(c)); });
  std::atomic<bool> stop{false};
  const auto until = [&](int trials) {
    return [&stop, trials](const CompareState& state) { stop = state.trials_done >= trials; };
  };
  const Comparison cut =
      compare(problem.session, problem.candidates, options, sharing(runner), clock_, until(8), &stop);
  EXPECT_EQ(cut.trials.size(), 8u);
  EXPECT_EQ(cut.cut_short.size(), 1u);
  stop = false;
  const Comparison whole = compare(problem.session, problem.candidates, options, sharing(runner), clock_);
  EXPECT_EQ(runner.asked.size(), 12u) << "nothing is measured twice";
  options.directory = directory / "at_once";
  const Comparison at_once = compare(problem.session, problem.candidates, options, sharing(runner), clock_);
  ASSERT_EQ(whole.trials.size(), at_once.trials.size());
  for (std::size_t i = 0; i < whole.trials.size(); ++i) {
    EXPECT_EQ(whole.trials[i].configuration, at_once.trials[i].configuration) << i;
  }
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
