#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "search/strategies/strategy.h"

namespace krigtune::compare {

/// Wilcoxon's signed-rank test: returns the probability of a difference at least as clear as this one, in either
/// direction, if there were none. Differences of 0 are ignored; the result is 1 if no others remain.
double signed_rank_p_value(const std::vector<double>& differences);
/// The sign test: returns the same probability from how often each of the two came first.
double sign_test_p_value(int wins, int losses);

struct RatioInterval {
  double ratio = 1.0;  ///< mean of the numerators / mean of the denominators
  double lower_95 = 1.0, upper_95 = 1.0;
};
/// Bootstraps pairs (numerator, denominator) with replacement, 10^4 times. Requires positive numbers and at least one
/// pair.
RatioInterval ratio_of_means(const std::vector<double>& numerators, const std::vector<double>& denominators,
                             std::uint64_t seed);

/// What was paired.
enum class Pairing {
  kSeeds,          ///< the runs of the same seed
  kOneWithEach,    ///< the single run of a deterministic strategy with each run of the other
  kOneWithTheOne,  ///< one run each: both are deterministic, so there is no test
};

/// How many trials the first strategy and another need until the best is within a given regret of the optimum.
struct PairedComparison {
  search::StrategyKind first{}, other{};
  double within = 0.05;
  Pairing pairing = Pairing::kSeeds;
  int pairs = 0;
  int first_runs = 0, other_runs = 0;            ///< runs that were paired
  double first_mean = 0.0, other_mean = 0.0;     ///< mean trials; budget + 1 if it was not reached
  int first_unreached = 0, other_unreached = 0;  ///< pairs in which it was not reached
  /// Other_mean / first_mean: how many times fewer trials the first one needs.
  double ratio = 1.0;
  std::optional<double> lower_95, upper_95;  ///< of the ratio; empty with fewer than two pairs
  int wins = 0, ties = 0, losses = 0;        ///< of the first strategy
  double signed_rank_p = 1.0;
  double sign_p = 1.0;
};

/// The trials that the runs of a strategy needed, by seed.
struct PairedRuns {
  std::vector<std::uint64_t> seeds;
  std::vector<double> trials;
};
/// `budget`: more trials than this mean that the regret was not reached. Seeds that only one of them has are left out.
/// Empty if nothing can be paired.
std::optional<PairedComparison> paired_comparison(const PairedRuns& first, const PairedRuns& other, int budget);

}  // namespace krigtune::compare
