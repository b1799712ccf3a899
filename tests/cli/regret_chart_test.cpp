#include "programs/krigtune/regret_chart.h"

#include <gtest/gtest.h>

namespace krigtune::regret_chart_test {

TEST(RegretChart, PutsEachStrategyIntoTheBandOfItsMedian) {
  compare::Comparison comparison;
  for (const auto& [strategy, regrets] : {std::pair(search::StrategyKind::kBayes, std::vector<double>{0.6, 0.06, 0.0}),
                                          std::pair(search::StrategyKind::kGrid, std::vector<double>{0.6, 0.3, 0.3})}) {
    for (std::size_t i = 0; i < regrets.size(); ++i) {
      comparison.trials.push_back({strategy, 1, static_cast<int>(i), "ok", 1.0, 1.0, regrets[i], 0.0});
    }
    compare::StrategySummary summary;
    summary.strategy = strategy;
    comparison.summary.push_back(summary);
  }
  EXPECT_EQ(cli::regret_chart(comparison, 3, 80),
            "median regret after 1 to 3 trials (b bayes, g grid, * several)\n"
            " >= 50 % |******\n >= 20 % |      gggggggggggg\n >= 10 % |\n  >= 5 % |      bbbbbb\n  >= 2 % |\n"
            "  >= 1 % |\n>= 0.5 % |\n>= 0.2 % |\n>= 0.1 % |\n    less |            bbbbbb\n"
            "         ++-----+-----+-----\n          1     2     3\n");
}

}  // namespace krigtune::regret_chart_test
