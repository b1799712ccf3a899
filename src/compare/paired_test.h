#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "search/strategies/strategy.h"

namespace krigtune::compare {

/// Probability of a difference as clear as this one or clearer, in either direction, if there were none: Wilcoxon's
/// signed-rank test. Differences of 0 say nothing and are left out; 1 where none is left.
double signed_rank_p_value(const std::vector<double>& differences);
/// The sign test: likewise, from how often either came first.
double sign_test_p_value(int wins, int losses);

struct RatioInterval {
  double ratio = 1.0;  ///< mean of the numerators / mean of the denominators
  double lower_95 = 1.0, upper_95 = 1.0;
};
/// Pairs (numerator, denominator) drawn with replacement, 10^4 times. Positive numbers; at least one pair.
RatioInterval ratio_of_means(const std::vector<double>& numerators, const std::vector<double>& denominators,
                             std::uint64_t seed);

/// What was paired.
enum class Pairing {
  kSeeds,          ///< the runs of the same seed
  kOneWithEach,    ///< the one run of a strategy without chance with each run of the other
  kOneWithTheOne,  ///< one run each: no chance, no test
};

/// How many trials the first strategy and another need until the best is within so much of the optimum.
struct PairedComparison {
  search::StrategyKind first{}, other{};
  double within = 0.05;
  Pairing pairing = Pairing::kSeeds;
  int pairs = 0;
  int first_runs = 0, other_runs = 0;            ///< that were paired
  double first_mean = 0.0, other_mean = 0.0;     ///< trials; budget + 1 where it was not reached
  int first_unreached = 0, other_unreached = 0;  ///< of the pairs
  double ratio = 1.0;                            ///< other_mean / first_mean: how many times fewer the first needs
  std::optional<double> lower_95, upper_95;      ///< of the ratio; empty with fewer than two pairs
  int wins = 0, ties = 0, losses = 0;            ///< of the first strategy
  double signed_rank_p = 1.0;
  double sign_p = 1.0;
};

/// Trials needed by the runs of two strategies.
struct PairedRuns {
  std::vector<std::uint64_t> seeds;
  std::vector<double> trials;
};
/// `budget`: more trials than that were not reached. Seeds that only one of them has are left out; empty where nothing
/// can be paired.
std::optional<PairedComparison> paired_comparison(const PairedRuns& first, const PairedRuns& other, int budget);

}  // namespace krigtune::compare
