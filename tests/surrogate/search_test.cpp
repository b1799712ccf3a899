// The parts together: fit, LogEI, and asking for the best one of a list of candidates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/surrogate.h"

namespace krigtune::search_test {

using Eigen::Index;
using Eigen::VectorXd;

constexpr Index kCandidates = 200;

/// Forrester, Sobester & Keane 2008, negated: a local maximum, a plain, the maximum near 0.757 and a fall to the worst.
double forrester(double x) { return -std::pow(6.0 * x - 2.0, 2) * std::sin(12.0 * x - 4.0); }

/// A throughput: gains from a larger batch level off, then a cost that grows with its square.
double throughput(double x) { return std::log(1.0 / (0.2 + 0.05 / (x + 0.05) + 0.4 * x * x)); }

using Function = double (*)(double);

std::vector<Index> search(Function f, std::uint64_t seed, int evaluations) {
  surrogate::Points all = surrogate::Points::zero(kCandidates, 1, 0);
  all.ordered.col(0) = VectorXd::LinSpaced(kCandidates, 0.0, 1.0);
  std::vector<Index> asked{0, 50, 100, 149, kCandidates - 1};
  while (static_cast<int>(asked.size()) < evaluations) {
    surrogate::Points seen;
    VectorXd values(static_cast<Index>(asked.size()));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      seen.append(all.slice(asked[i], 1));
      values[static_cast<Index>(i)] = f(all.ordered(asked[i], 0));
    }
    surrogate::Surrogate gp;
    Rng rng(seed, asked.size());
    gp.fit({seen, values, {}}, rng);
    VectorXd score = surrogate::log_expected_improvement(gp.predict(all), values.maxCoeff());
    for (const Index done : asked) score[done] = -HUGE_VAL;
    Index next = 0;
    score.maxCoeff(&next);
    asked.push_back(next);
  }
  return asked;
}

TEST(Search, FindsTheBestOfTwoHundredCandidatesInFifteenEvaluations) {
  for (const Function f : {&forrester, &throughput}) {
    Index best = 0;
    VectorXd::LinSpaced(kCandidates, 0.0, 1.0).unaryExpr(f).maxCoeff(&best);
    for (const std::uint64_t seed : {1, 2, 3}) {
      const std::vector<Index> asked = search(f, seed, 15);
      EXPECT_TRUE(std::find(asked.begin(), asked.end(), best) != asked.end()) << "seed " << seed;
    }
  }
}

TEST(Search, AsksNothingTwiceAndTheSameForTheSameSeed) {
  std::vector<Index> asked = search(&forrester, 4, 12);
  EXPECT_EQ(asked, search(&forrester, 4, 12));
  std::sort(asked.begin(), asked.end());
  EXPECT_TRUE(std::adjacent_find(asked.begin(), asked.end()) == asked.end());
}

}  // namespace krigtune::search_test
