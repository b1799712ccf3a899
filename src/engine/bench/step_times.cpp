#include "bench/step_times.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace krigtune {
namespace {

constexpr double kTail = 0.025;      // on either side
constexpr double kNormal975 = 1.96;  // 97.5 % quantile of the normal distribution

// The largest j with P(Binomial(n, 1/2) < j) <= 2.5 %: the median is below the j-th smallest (from 1) no more often.
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

double quantile_of(const std::vector<double>& sorted, double probability) {
  assert(!sorted.empty());
  const double at = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

}  // namespace

void StepTimes::add(double step_time_s) {
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), step_time_s), step_time_s);
}

double StepTimes::quantile(double probability) const { return quantile_of(sorted_, probability); }

double StepTimes::median_sem() const {
  constexpr double kMedianOverMean = 1.2533;
  constexpr double kNormalMad = 1.4826;
  std::vector<double> deviations;
  const double center = median();
  for (const double value : sorted_) deviations.push_back(std::abs(value - center));
  std::sort(deviations.begin(), deviations.end());
  return kMedianOverMean * kNormalMad * quantile_of(deviations, 0.5) / std::sqrt(static_cast<double>(size()));
}

Interval StepTimes::median_interval() const {
  assert(!sorted_.empty());
  if (!has_median_interval()) return {sorted_.front(), sorted_.back()};
  const std::size_t rank = lower_rank(size());
  return {sorted_[rank - 1], sorted_[size() - rank]};
}

}  // namespace krigtune
