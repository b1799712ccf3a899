// The 95 % interval of the median from order statistics (David and Nagaraja 2003, section 7.1). The number of samples
// out of n that lie below the true median m is a sum of n indicators, with mean n / 2. If they are independent, it is
// Binomial(n, 1/2), and the exact ranks follow. Step times are not independent: a slow second of the machine makes many
// slow steps. The variance of the count is then n tau / 4 with the autocorrelation time of the indicators,
//
//   tau = 1 + 2 sum_k rho_k,      rho_k: autocorrelation of sign(x_t - m) at lag k,
//
// whatever the distribution of x (Sen 1968 for m-dependent samples, Heidelberger and Lewis 1984 for quantiles of
// simulation output), and the ranks are n/2 -+ t sqrt(n tau) / 2, with Student's t for n / tau - 1 degrees of freedom.
// The sum is truncated by Geyer's initial monotone sequence (1992, section 3.3): pairs rho_2k + rho_2k+1 count as long
// as they are positive, none larger than the one before. Centring at the sample's own median makes each rho_k too small
// by tau / n; adding that back in two more rounds removes most of the bias. tests/bench/step_times_test.cpp measures
// the coverage. A trend is not covered, because then there is no median to enclose; drift_per_step_s shows it.
//
// Outliers: hyperfine's modified z-score (Iglewicz and Hoaglin 1993). Slope: Theil 1950, Sen 1968.
#include "programs/bench/step_times.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace krigtune::bench {
namespace {

constexpr double kTail = 0.025;                   // probability on either side
constexpr double kNormal975 = 1.959963984540054;  // 97.5 % quantile of the normal distribution
constexpr std::size_t kLeastForInterval = 6;      // 2 * 2^-n <= 5 %

// Returns the largest j with P(Binomial(n, 1/2) < j) <= 2.5 %: the probability that the median is below the j-th
// smallest sample (counted from 1).
std::size_t lower_rank(std::size_t n) {
  constexpr std::size_t kExact = 100;
  const auto count = static_cast<double>(n);
  if (n > kExact) return static_cast<std::size_t>((count - kNormal975 * std::sqrt(count)) / 2.0);
  double term = std::pow(0.5, count);
  double below = term;
  std::size_t rank = 0;
  while (below <= kTail) {
    term *= (count - static_cast<double>(rank)) / static_cast<double>(rank + 1);
    ++rank;
    below += term;
  }
  return rank;
}

// Returns the 97.5 % quantile of Student's t: the expansion of Abramowitz and Stegun 26.7.5, within 1 % from 3 degrees
// of freedom on.
double student_975(double degrees) {
  const double z = kNormal975;
  const double z2 = z * z;
  const double first = z * (z2 + 1.0) / 4.0;
  const double second = z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
  const double third = z * (3.0 * z2 * z2 * z2 + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
  return z + (first + (second + third / degrees) / degrees) / degrees;
}

// Returns the same rank for tau > 1; 0 if there is none.
std::size_t lower_rank(std::size_t n, double tau) {
  constexpr double kLeastDegrees = 3.0;
  const auto count = static_cast<double>(n);
  const double degrees = std::max(kLeastDegrees, count / tau - 1.0);
  return static_cast<std::size_t>(std::max(0.0, (count - student_975(degrees) * std::sqrt(count * tau)) / 2.0));
}

double quantile_of(const std::vector<double>& sorted, double probability) {
  assert(!sorted.empty());
  const double at = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile_of(values, 0.5);
}

double mean_product(const std::vector<double>& signs, std::size_t lag) {
  double sum = 0.0;
  for (std::size_t t = 0; t + lag < signs.size(); ++t) sum += signs[t] * signs[t + lag];
  return sum / static_cast<double>(signs.size());
}

// Does one round. `missing` is what centring has removed from each autocorrelation.
double geyer_sum(const std::vector<double>& signs, double missing) {
  const double variance = mean_product(signs, 0);
  const auto count = static_cast<double>(signs.size());
  const auto correlation = [&](std::size_t lag) {
    const double weight = (count - static_cast<double>(lag)) / count;
    return (mean_product(signs, lag) / variance + weight * missing) / (1.0 + missing);
  };
  double sum = 0.0;
  double pair = std::numeric_limits<double>::infinity();
  for (std::size_t lag = 0; lag + 1 < signs.size(); lag += 2) {
    pair = std::min(pair, correlation(lag) + correlation(lag + 1));
    if (pair <= 0.0) break;
    sum += pair;
  }
  return 2.0 * sum - 1.0;
}

// Returns the medians of at most `count` stretches of equal length. Samples beyond the last whole stretch are ignored.
std::vector<double> stretches(const std::vector<double>& values, std::size_t count) {
  if (values.size() <= count) return values;
  const std::size_t length = values.size() / count;
  std::vector<double> medians;
  for (std::size_t s = 0; s < count; ++s) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(s * length);
    medians.push_back(median_of({from, from + static_cast<std::ptrdiff_t>(length)}));
  }
  return medians;
}

}  // namespace

void StepTimes::add(double step_time_s) {
  in_order_.push_back(step_time_s);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), step_time_s), step_time_s);
}

double StepTimes::quantile(double probability) const { return quantile_of(sorted_, probability); }

double StepTimes::mean() const {
  double sum = 0.0;
  for (const double value : sorted_) sum += value;
  return sum / static_cast<double>(size());
}

double StepTimes::mad() const {
  std::vector<double> deviations;
  const double center = median();
  for (const double value : sorted_) deviations.push_back(std::abs(value - center));
  return median_of(std::move(deviations));
}

StepTimes StepTimes::part(std::size_t begin, std::size_t count) const {
  StepTimes part;
  for (std::size_t i = begin; i < begin + count; ++i) part.add(in_order_[i]);
  return part;
}

double StepTimes::autocorrelation_time() const {
  constexpr int kRounds = 3;
  const double center = median();
  const auto count = static_cast<double>(size());
  std::vector<double> signs;
  for (const double value : in_order_) signs.push_back(value > center ? 1.0 : value < center ? -1.0 : 0.0);
  if (mean_product(signs, 0) == 0.0) return 1.0;
  double tau = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    tau = std::max(1.0, std::min(geyer_sum(signs, tau / count), count / 2.0));
  }
  return tau;
}

double StepTimes::independent_sem() const {
  constexpr double kMedianOverMean = 1.2533;  // sqrt(pi / 2): standard errors of median and mean of normal samples
  constexpr double kNormalMad = 1.4826;       // 1 / Phi^-1(3/4)
  return kMedianOverMean * kNormalMad * mad() / std::sqrt(static_cast<double>(size()));
}

double StepTimes::median_sem() const { return independent_sem() * std::sqrt(autocorrelation_time()); }

Interval StepTimes::median_interval() const {
  assert(!sorted_.empty());
  if (size() < kLeastForInterval) return {sorted_.front(), sorted_.back()};
  const double tau = autocorrelation_time();
  const std::size_t rank = tau > 1.0 ? lower_rank(size(), tau) : lower_rank(size());
  if (rank == 0) return {sorted_.front(), sorted_.back()};
  return {sorted_[rank - 1], sorted_[size() - rank]};
}

std::int64_t StepTimes::outliers() const {
  constexpr double kThreshold = 14.826;
  const double center = median();
  const double allowed = kThreshold * mad();
  return std::count_if(sorted_.begin(), sorted_.end(), [&](double x) { return std::abs(x - center) > allowed; });
}

// A long sample has too many pairs, so it is reduced to 256 medians of stretches.
double StepTimes::drift_per_step_s() const {
  constexpr std::size_t kMost = 256;
  const std::vector<double> values = stretches(in_order_, kMost);
  if (values.size() < 2) return 0.0;
  const std::size_t length = size() <= kMost ? 1 : size() / kMost;
  std::vector<double> slopes;
  slopes.reserve(values.size() * (values.size() - 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      slopes.push_back((values[j] - values[i]) / static_cast<double>((j - i) * length));
    }
  }
  return median_of(std::move(slopes));
}

}  // namespace krigtune::bench
