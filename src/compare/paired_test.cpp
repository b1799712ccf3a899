// Two strategies on the same seeds, compared by how many trials they need.
//
// Signed ranks (Wilcoxon 1945): of the n differences d_i that are not 0, R is the sum of the ranks of |d_i| with d_i >
// 0, where ties have their mean rank. If the strategies do not differ, each sign is a fair coin: R = sum r_i b_i with
// b_i in {0, 1}. Its distribution, given the ranks and ties, is counted and not approximated. Doubled ranks are whole
// numbers, and adding one rank after the other to
//
//   P_0 = [1],  P_i(s) = (P_{i-1}(s) + P_{i-1}(s - 2 r_i)) / 2
//
// takes O(n^3) in all. Beyond 400 differences the normal limit is used: mean sum r_i / 2, variance sum r_i^2 / 4.
// p = 2 min(P(R <= r), P(R >= r)), at most 1.
//
// Ratio of means: its interval is the percentile bootstrap over pairs (Efron & Tibshirani 1993, chapter 13).
#include "compare/paired_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/statistics.h"
#include "krigtune/rng.h"

namespace krigtune::compare {
namespace {

constexpr std::size_t kMostCounted = 400;
constexpr int kResamples = 10'000;

// Returns twice the ranks of the absolute values, which are whole numbers although ties share their mean rank.
std::vector<std::int64_t> doubled_ranks(const std::vector<double>& differences) {
  std::vector<std::size_t> order(differences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size_of = [&](std::size_t i) { return std::abs(differences[i]); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size_of(a) < size_of(b); });
  std::vector<std::int64_t> ranks(differences.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && size_of(order[last]) <= size_of(order[first])) ++last;
    // Ranks first + 1 ... last have the mean (first + 1 + last) / 2.
    for (std::size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<std::int64_t>(first + 1 + last);
    first = last;
  }
  return ranks;
}

double counted_p_value(const std::vector<std::int64_t>& ranks, std::int64_t observed) {
  const std::int64_t most = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0});
  std::vector<double> probability(static_cast<std::size_t>(most) + 1, 0.0);
  probability[0] = 1.0;
  std::int64_t reached = 0;
  for (const std::int64_t rank : ranks) {
    reached += rank;
    for (std::int64_t s = reached; s >= 0; --s) {
      const double with = s >= rank ? probability[static_cast<std::size_t>(s - rank)] : 0.0;
      probability[static_cast<std::size_t>(s)] = 0.5 * (probability[static_cast<std::size_t>(s)] + with);
    }
  }
  const auto at = probability.begin() + observed;
  const double below = std::accumulate(probability.begin(), at + 1, 0.0);
  const double above = std::accumulate(at, probability.end(), 0.0);
  return std::min(1.0, 2.0 * std::min(below, above));
}

double normal_p_value(const std::vector<std::int64_t>& ranks, std::int64_t observed) {
  double sum = 0.0;
  double squares = 0.0;
  for (const std::int64_t rank : ranks) {
    sum += static_cast<double>(rank);
    squares += static_cast<double>(rank) * static_cast<double>(rank);
  }
  const double z = (static_cast<double>(observed) - 0.5 * sum) / std::sqrt(0.25 * squares);
  return 2.0 * normal_cdf(-std::abs(z));
}

// The numbers of both strategies, seed by seed. The single run of a deterministic strategy is repeated.
struct Pairs {
  std::vector<double> first, other;
  Pairing pairing = Pairing::kSeeds;
};

Pairs pairs_of(const PairedRuns& first, const PairedRuns& other) {
  Pairs pairs;
  if (first.seeds.size() == 1 || other.seeds.size() == 1) {
    pairs.first = first.trials;
    pairs.other = other.trials;
    const std::size_t count = std::max(pairs.first.size(), pairs.other.size());
    if (!pairs.first.empty()) pairs.first.resize(count, pairs.first.front());
    if (!pairs.other.empty()) pairs.other.resize(count, pairs.other.front());
    pairs.pairing = count == 1 ? Pairing::kOneWithTheOne : Pairing::kOneWithEach;
    return pairs;
  }
  for (std::size_t i = 0; i < first.seeds.size(); ++i) {
    const auto same = std::find(other.seeds.begin(), other.seeds.end(), first.seeds[i]);
    if (same == other.seeds.end()) continue;
    pairs.first.push_back(first.trials[i]);
    pairs.other.push_back(other.trials[static_cast<std::size_t>(same - other.seeds.begin())]);
  }
  return pairs;
}

}  // namespace

double signed_rank_p_value(const std::vector<double>& differences) {
  std::vector<double> clear;
  for (const double difference : differences) {
    if (difference != 0.0) clear.push_back(difference);
  }
  if (clear.empty()) return 1.0;
  const std::vector<std::int64_t> ranks = doubled_ranks(clear);
  std::int64_t positive = 0;
  for (std::size_t i = 0; i < clear.size(); ++i) positive += clear[i] > 0.0 ? ranks[i] : 0;
  return clear.size() <= kMostCounted ? counted_p_value(ranks, positive) : normal_p_value(ranks, positive);
}

double sign_test_p_value(int wins, int losses) {
  const int count = wins + losses;
  double tail = 0.0;
  for (int k = 0; k <= std::min(wins, losses); ++k) {
    tail += std::exp(std::lgamma(count + 1.0) - std::lgamma(k + 1.0) - std::lgamma(count - k + 1.0) -
                     count * std::log(2.0));
  }
  return std::min(1.0, 2.0 * tail);
}

RatioInterval ratio_of_means(const std::vector<double>& numerators, const std::vector<double>& denominators,
                             std::uint64_t seed) {
  const auto sum = [](const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); };
  RatioInterval interval;
  interval.ratio = sum(numerators) / sum(denominators);
  Rng rng(seed, numerators.size());
  std::vector<double> ratios;
  ratios.reserve(kResamples);
  for (int resample = 0; resample < kResamples; ++resample) {
    double numerator = 0.0;
    double denominator = 0.0;
    for (std::size_t i = 0; i < numerators.size(); ++i) {
      const std::size_t pair = rng.below(numerators.size());
      numerator += numerators[pair];
      denominator += denominators[pair];
    }
    ratios.push_back(numerator / denominator);
  }
  std::sort(ratios.begin(), ratios.end());
  interval.lower_95 = quantile(ratios, 0.025);
  interval.upper_95 = quantile(ratios, 0.975);
  return interval;
}

std::optional<PairedComparison> paired_comparison(const PairedRuns& first, const PairedRuns& other, int budget) {
  constexpr std::uint64_t kSeed = 1;  // of the bootstrap
  const Pairs pairs = pairs_of(first, other);
  if (pairs.first.empty() || pairs.other.empty()) return std::nullopt;
  PairedComparison result;
  result.pairing = pairs.pairing;
  result.pairs = static_cast<int>(pairs.first.size());
  result.first_runs = first.seeds.size() == 1 ? 1 : result.pairs;
  result.other_runs = other.seeds.size() == 1 ? 1 : result.pairs;
  std::vector<double> differences;
  for (std::size_t i = 0; i < pairs.first.size(); ++i) {
    differences.push_back(pairs.other[i] - pairs.first[i]);
    result.first_mean += pairs.first[i];
    result.other_mean += pairs.other[i];
    result.first_unreached += pairs.first[i] > budget ? 1 : 0;
    result.other_unreached += pairs.other[i] > budget ? 1 : 0;
    result.wins += differences.back() > 0.0 ? 1 : 0;
    result.losses += differences.back() < 0.0 ? 1 : 0;
  }
  result.first_mean /= result.pairs;
  result.other_mean /= result.pairs;
  result.ties = result.pairs - result.wins - result.losses;
  const RatioInterval interval = ratio_of_means(pairs.other, pairs.first, kSeed);
  result.ratio = interval.ratio;
  if (result.pairs < 2) return result;
  result.lower_95 = interval.lower_95;
  result.upper_95 = interval.upper_95;
  result.signed_rank_p = signed_rank_p_value(differences);
  result.sign_p = sign_test_p_value(result.wins, result.losses);
  return result;
}

}  // namespace krigtune::compare
