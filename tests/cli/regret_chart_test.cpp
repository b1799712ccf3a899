#include "cli/regret_chart.h"

#include <gtest/gtest.h>

namespace krigtune {
namespace {

TEST(MedianRegret, IsTheMedianOverSeedsAndARunThatEndedKeepsItsLast) {
  Comparison comparison;
  const auto add = [&](std::uint64_t seed, std::vector<double> regrets) {
    for (std::size_t i = 0; i < regrets.size(); ++i) {
      comparison.trials.push_back({StrategyKind::kBayes, seed, static_cast<int>(i), "ok", 1.0, 1.0, regrets[i], 0.0});
    }
  };
  add(1, {0.9, 0.5, 0.1});
  add(2, {0.8, 0.3});
  add(3, {0.2, 0.2, 0.2});
  EXPECT_EQ(median_regret(comparison, StrategyKind::kBayes, 3), (std::vector<double>{0.8, 0.3, 0.2}));
  EXPECT_TRUE(median_regret(comparison, StrategyKind::kGrid, 3).empty());
}

TEST(RegretChart, PutsEachStrategyIntoTheBandOfItsMedian) {
  Comparison comparison;
  for (const auto& [strategy, regrets] : {std::pair(StrategyKind::kBayes, std::vector<double>{0.6, 0.06, 0.0}),
                                          std::pair(StrategyKind::kGrid, std::vector<double>{0.6, 0.3, 0.3})}) {
    for (std::size_t i = 0; i < regrets.size(); ++i) {
      comparison.trials.push_back({strategy, 1, static_cast<int>(i), "ok", 1.0, 1.0, regrets[i], 0.0});
    }
    StrategySummary summary;
    summary.strategy = strategy;
    comparison.summary.push_back(summary);
  }
  EXPECT_EQ(regret_chart(comparison, 3, 80),
            "median regret after 1 to 3 trials (b bayes, g grid, * several)\n"
            " >= 50 % |*\n >= 20 % | gg\n >= 10 % |\n  >= 5 % | b\n  >= 2 % |\n  >= 1 % |\n>= 0.5 % |\n>= 0.2 % |\n"
            ">= 0.1 % |\n    less |  b\n");
}

}  // namespace
}  // namespace krigtune
