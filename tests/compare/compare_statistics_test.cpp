#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compare/compare.h"

namespace krigtune::compare_statistics_test {

compare::ComparedTrial row(search::StrategyKind strategy, std::uint64_t seed, int trial, std::optional<double> value,
                           const char* status = "ok") {
  compare::ComparedTrial compared;
  compared.strategy = strategy;
  compared.seed = seed;
  compared.trial = trial;
  compared.value = value;
  compared.status = status;
  return compared;
}

// Three seeds of random and one of grid, which ended early. The optimum is 100, the budget 5.
compare::Comparison worked_out_by_hand() {
  constexpr search::StrategyKind kRandom = search::StrategyKind::kRandom;
  constexpr search::StrategyKind kGrid = search::StrategyKind::kGrid;
  compare::Comparison comparison;
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
  compare::summarise(comparison, {"speed", true, "speed"}, 5);
  return comparison;
}

TEST(Summary, FillsTheRegretOfEachTrial) {
  const std::vector<compare::ComparedTrial> trials = worked_out_by_hand().trials;
  EXPECT_EQ(trials[0].regret, 1.0);  // before the first successful trial
  EXPECT_FALSE(trials[0].best_so_far);
  EXPECT_NEAR(trials[1].regret, 0.2, 1e-15);
  EXPECT_EQ(trials[4].best_so_far, 100.0);
  EXPECT_EQ(trials[4].regret, 0.0);
  EXPECT_EQ(trials[6].best_so_far, 95.0);
}

TEST(Summary, IsWhatOneWorksOutByHand) {
  const compare::Comparison comparison = worked_out_by_hand();
  ASSERT_EQ(comparison.summary.size(), 2u);
  const compare::StrategySummary& random = comparison.summary[0];
  EXPECT_EQ(random.seeds, 3);
  // Trials to 5 %: 3, 1 (95 is exactly at the limit), 2. To 1 %: 3, 6 (never), 2 (99 is exactly at the limit).
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
  EXPECT_FALSE(random.best_over_optimum_at[1]);  // ten trials exceed the budget

  const compare::StrategySummary& grid = comparison.summary[1];
  EXPECT_EQ(grid.seeds, 1);
  EXPECT_EQ(grid.trials_to_5pct.median, 6.0);
  EXPECT_NEAR(*grid.best_over_optimum_at[0], 0.7, 1e-15);  // it ended after two trials and keeps its last value
}

TEST(Summary, MeasuresRegretTheOtherWayRoundWhenMinimised) {
  compare::Comparison comparison;
  comparison.trials = {row(search::StrategyKind::kGrid, 1, 0, 8.0), row(search::StrategyKind::kGrid, 1, 1, 4.0)};
  comparison.optimum = 2.0;
  comparison.optimum_is_known = true;
  compare::summarise(comparison, {"cost", false, "cost"}, 2);
  EXPECT_NEAR(comparison.trials[0].regret, 0.75, 1e-15);
  EXPECT_NEAR(comparison.trials[1].regret, 0.5, 1e-15);
}

TEST(Summary, TakesTheBestOfAllRunsWhereTheOptimumIsNotKnown) {
  compare::Comparison comparison;
  comparison.trials = {row(search::StrategyKind::kBayes, 1, 0, 8.0), row(search::StrategyKind::kGrid, 1, 0, 10.0)};
  compare::summarise(comparison, {"speed", true, "speed"}, 1);
  EXPECT_EQ(comparison.optimum, 10.0);
  EXPECT_NEAR(comparison.trials[0].regret, 0.2, 1e-15);
}

// The table says 100 for a and 90 for b. Each measurement has its luck.
TEST(Summary, JudgesARunByTheConfigurationThatItNamesNotByItsLuckiestMeasurement) {
  constexpr search::StrategyKind kRandom = search::StrategyKind::kRandom;
  compare::Comparison comparison;
  comparison.trials = {row(kRandom, 1, 0, 96.0), row(kRandom, 1, 1, 99.0), row(kRandom, 1, 2, 85.0)};
  const char* configurations[] = {"a", "b", "b"};
  for (std::size_t i = 0; i < 3; ++i) {
    comparison.trials[i].configuration = configurations[i];
    comparison.trials[i].worth = i == 0 ? 100.0 : 90.0;
  }
  comparison.optimum = 100.0;
  comparison.optimum_is_known = true;
  compare::summarise(comparison, {"speed", true, "speed"}, 3);
  EXPECT_EQ(comparison.trials[0].regret, 0.0);
  EXPECT_NEAR(comparison.trials[1].regret, 0.1, 1e-15) << "b looks better, and is not";
  EXPECT_EQ(comparison.trials[2].regret, 0.0) << "measured again, b falls after: (99 + 85) / 2 < 96";
}

TEST(Summary, TakesTheMeanOverAllRunsForTheWorthOfAConfigurationThatNoTableKnows) {
  compare::Comparison comparison;
  comparison.trials = {row(search::StrategyKind::kBayes, 1, 0, 110.0), row(search::StrategyKind::kGrid, 1, 0, 90.0),
                       row(search::StrategyKind::kGrid, 1, 1, 102.0)};
  for (std::size_t i = 0; i < 3; ++i) comparison.trials[i].configuration = i < 2 ? "a" : "b";
  compare::summarise(comparison, {"speed", true, "speed"}, 2);
  EXPECT_EQ(comparison.optimum, 102.0);
  EXPECT_EQ(comparison.trials[0].best_so_far, 100.0);
  EXPECT_NEAR(comparison.trials[0].regret, 1.0 - 100.0 / 102.0, 1e-15);
}

TEST(Summary, LeavesOutRunsThatWereCutShort) {
  compare::Comparison comparison;
  comparison.trials = {row(search::StrategyKind::kBayes, 1, 0, 8.0), row(search::StrategyKind::kBayes, 2, 0, 4.0),
                       row(search::StrategyKind::kGrid, 1, 0, 10.0)};
  comparison.cut_short = {{search::StrategyKind::kBayes, 2}};
  compare::summarise(comparison, {"speed", true, "speed"}, 1);
  EXPECT_EQ(comparison.summary[0].seeds, 1);
  EXPECT_EQ(comparison.runs.size(), 2u);
  EXPECT_EQ(comparison.trials.size(), 3u) << "their trials stay";
  EXPECT_NEAR(comparison.trials[1].regret, 0.6, 1e-15);
}

TEST(Summary, SumsTheSecondsUntilTheTargetAndOfTheWholeRun) {
  compare::Comparison comparison;
  for (int i = 0; i < 4; ++i) {
    comparison.trials.push_back(row(search::StrategyKind::kBayes, 1, i, i == 2 ? 100.0 : 50.0));
    comparison.trials.back().wall_s = 2.0;
  }
  compare::summarise(comparison, {"speed", true, "speed"}, 4);
  EXPECT_EQ(comparison.summary[0].seconds_to_5pct.median, 6.0);
  EXPECT_EQ(comparison.summary[0].seconds.median, 8.0);
}

TEST(RegretCurve, HasTheMedianAndTheQuartilesAndARunThatEndedKeepsItsLast) {
  compare::Comparison comparison;
  const auto add = [&](std::uint64_t seed, const std::vector<double>& regrets) {
    for (std::size_t i = 0; i < regrets.size(); ++i) {
      comparison.trials.push_back(row(search::StrategyKind::kBayes, seed, static_cast<int>(i), 1.0));
      comparison.trials.back().regret = regrets[i];
    }
  };
  add(1, {0.9, 0.5, 0.1});
  add(2, {0.8, 0.3});
  add(3, {0.2, 0.2, 0.2});
  const std::vector<compare::SeedStatistics> curve = compare::regret_curve(comparison, search::StrategyKind::kBayes, 3);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].median, 0.8);
  EXPECT_EQ(curve[1].median, 0.3);
  EXPECT_EQ(curve[2].median, 0.2);
  EXPECT_NEAR(curve[1].q75, 0.4, 1e-15);
  EXPECT_TRUE(compare::regret_curve(comparison, search::StrategyKind::kGrid, 3).empty());
}

// Tries every one of the 2^n assignments of signs to the ranks.
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

// Differences 1 ... n, the named ones negative. The sum of their ranks is the statistic.
std::vector<double> ranked(int count, const std::set<int>& negative) {
  std::vector<double> differences;
  for (int i = 1; i <= count; ++i) differences.push_back(negative.count(i) > 0 ? -i : i);
  return differences;
}

TEST(SignedRank, HasTheTabulatedCriticalValues) {
  // Critical values at two-sided 5 %: n = 6: 0, 8: 3, 10: 8, 15: 25, 20: 52 (Wilcoxon, Katti & Wilcox 1970, and
  // textbooks). At the critical value p <= 0.05, one above it p > 0.05.
  EXPECT_LE(compare::signed_rank_p_value(ranked(6, {})), 0.05);
  EXPECT_GT(compare::signed_rank_p_value(ranked(6, {1})), 0.05);
  EXPECT_LE(compare::signed_rank_p_value(ranked(8, {3})), 0.05);
  EXPECT_GT(compare::signed_rank_p_value(ranked(8, {4})), 0.05);
  EXPECT_LE(compare::signed_rank_p_value(ranked(10, {8})), 0.05);
  EXPECT_GT(compare::signed_rank_p_value(ranked(10, {9})), 0.05);
  EXPECT_LE(compare::signed_rank_p_value(ranked(15, {12, 13})), 0.05);
  EXPECT_GT(compare::signed_rank_p_value(ranked(15, {12, 14})), 0.05);
  EXPECT_LE(compare::signed_rank_p_value(ranked(20, {16, 17, 19})), 0.05);
  EXPECT_GT(compare::signed_rank_p_value(ranked(20, {16, 18, 19})), 0.05);
  // n = 5 gives exactly 2 / 2^5.
  EXPECT_EQ(compare::signed_rank_p_value(ranked(5, {})), 0.0625);
}

TEST(SignedRank, IsExactWithTies) {
  const std::vector<double> tied = {1, 1, -1, 2, 2, -2, 3, 5, 5, 5, -1, 4};
  EXPECT_NEAR(compare::signed_rank_p_value(tied), signed_rank_by_enumeration(tied), 1e-14);
  EXPECT_EQ(compare::signed_rank_p_value({1, -1, 2, -2}), 1.0);
}

TEST(SignedRank, LeavesOutWhatDoesNotDiffer) {
  EXPECT_EQ(compare::signed_rank_p_value({0, 3, 0, 1, 2, 0}), compare::signed_rank_p_value({3, 1, 2}));
  EXPECT_EQ(compare::signed_rank_p_value({0, 0}), 1.0);
  EXPECT_EQ(compare::signed_rank_p_value({}), 1.0);
}

TEST(SignedRank, OfManyPairsGoesOverIntoTheNormalLimit) {
  std::vector<double> differences;
  for (int i = 1; i <= 400; ++i) differences.push_back(i % 20 < 9 ? -i : i);
  const double counted = compare::signed_rank_p_value(differences);
  differences.push_back(0.5);  // the smallest rank: almost nothing changes except the method
  const double normal = compare::signed_rank_p_value(differences);
  EXPECT_TRUE(counted > 0.001 && counted < 0.2) << counted;
  EXPECT_LE(std::abs(normal / counted - 1.0), 0.02);
}

TEST(SignTest, IsTheBinomialTail) {
  EXPECT_NEAR(compare::sign_test_p_value(9, 1), 2.0 * 11.0 / 1024.0, 1e-15);
  EXPECT_NEAR(compare::sign_test_p_value(0, 5), 2.0 / 32.0, 1e-15);
  EXPECT_EQ(compare::sign_test_p_value(4, 4), 1.0);
  EXPECT_EQ(compare::sign_test_p_value(0, 0), 1.0);
}

TEST(RatioOfMeans, HasAnIntervalThatIsThatOfTheDeltaMethod) {
  // Independent columns with means 10 and 5 and variances 2 each: the log ratio has the variance 2/n (1/100 + 1/25).
  std::vector<double> numerators;
  std::vector<double> denominators;
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    numerators.push_back(10.0 + (i % 5 - 2));
    denominators.push_back(5.0 + (i / 5 % 5 - 2));
  }
  const compare::RatioInterval interval = compare::ratio_of_means(numerators, denominators, 1);
  EXPECT_NEAR(interval.ratio, 2.0, 1e-14);
  const double stddev = std::sqrt(2.0 / kCount * (1.0 / 100.0 + 1.0 / 25.0));
  // 10^4 resamples determine a 2.5 % quantile to about 2 % of the stddev; 6 % allow for the skew as well.
  EXPECT_LE(std::abs(std::log(interval.lower_95 / 2.0) / stddev + 1.96), 0.06);
  EXPECT_LE(std::abs(std::log(interval.upper_95 / 2.0) / stddev - 1.96), 0.06);
}

TEST(PairedComparison, PairsTheRunsOfTheSameSeed) {
  const compare::PairedRuns first{{1, 2, 3}, {2.0, 3.0, 4.0}};
  const compare::PairedRuns other{{3, 2, 4}, {8.0, 3.0, 1.0}};
  const auto pair = compare::paired_comparison(first, other, 7);
  ASSERT_TRUE(pair);
  EXPECT_EQ((std::vector<int>{pair->pairs, pair->first_runs, pair->other_runs}), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(pair->first_mean, 3.5);
  EXPECT_EQ(pair->other_mean, 5.5);
  EXPECT_EQ(pair->wins, 1);
  EXPECT_EQ(pair->ties, 1);
  EXPECT_EQ(pair->other_unreached, 1);
  EXPECT_EQ(pair->ratio, 5.5 / 3.5);
}

TEST(PairedComparison, PairsTheOneRunWithEachOfTheOther) {
  const auto pair = compare::paired_comparison({{1, 2, 3, 4}, {2.0, 2.0, 4.0, 4.0}}, {{1}, {6.0}}, 7);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->pairing, compare::Pairing::kOneWithEach);
  EXPECT_EQ((std::vector<int>{pair->pairs, pair->first_runs, pair->other_runs}), (std::vector<int>{4, 4, 1}));
  EXPECT_EQ(pair->ratio, 2.0);
  EXPECT_EQ(pair->wins, 4);
  EXPECT_TRUE(*pair->lower_95 >= 1.5 && *pair->upper_95 <= 3.0);
  const auto ones = compare::paired_comparison({{1}, {2.0}}, {{1}, {6.0}}, 7);
  EXPECT_EQ(ones->pairing, compare::Pairing::kOneWithTheOne);
  EXPECT_FALSE(ones->lower_95);
  EXPECT_FALSE(compare::paired_comparison({{1, 2}, {1.0, 1.0}}, {{3, 4}, {1.0, 1.0}}, 7));
}

}  // namespace krigtune::compare_statistics_test
