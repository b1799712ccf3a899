// Estimates the speed of a trial. With t_i the values of the n steps after the warm-up, the estimate is
//
//   t = median(t_i),   s = 1.4826 b_n median(|t_i - t|),   standard error = sqrt(pi / (2 n)) s
//
// 1.4826 = 1 / Phi^-1(3/4) turns the median deviation into a standard deviation of normal errors, b_n is its
// small-sample correction (Croux and Rousseeuw 1992, "Time-efficient algorithms for two highly robust estimators of
// scale", COMPSTAT), and sqrt(pi / 2) is the loss of efficiency of the median (Kenney and Keeping 1962). A step with a
// checkpoint, a garbage collection or a disturbance changes neither estimate.
//
// Correlated steps make that error too small. The variance of the median of a stationary series is that of independent
// values times 1 + 2 sum_k c_k, with c_k the correlation of sign(t_i - t) and sign(t_(i+k) - t) (Sen 1968, "Asymptotic
// normality of sample quantiles for m-dependent processes"). For normal errors c_k = (2 / pi) asin(r_k) (Sheppard
// 1899); with r_k = r^k, as in a first-order autoregression,
//
//   factor^2 = 1 + (4 / pi) sum_k asin(r^k)
//
// r is the correlation of neighbours, computed from deviations limited to 3 s so that one outlier does not determine
// it. Negative correlations count as zero. The tuner learns the noise between runs.
#include "trial/step_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace krigtune::trial {
namespace {

constexpr double kToStddev = 1.4826;
constexpr double kNoticeable = 0.05;  // relative; a race allows for as much
constexpr double kDriftErrors = 3.0;

double small_sample_factor(std::size_t n) {
  constexpr std::array kFactors = {1.0, 1.0, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
  return n < kFactors.size() ? kFactors[n] : static_cast<double>(n) / (static_cast<double>(n) - 0.8);
}

double robust_stddev(const std::vector<double>& values, double median) {
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return kToStddev * small_sample_factor(values.size()) * middle(std::move(deviations));
}

double neighbours_correlation(const std::vector<double>& values, double median) {
  constexpr double kCut = 3.0;
  constexpr double kMost = 0.95;
  const double stddev = robust_stddev(values, median);
  if (!(stddev > 0.0)) return 0.0;
  double products = 0.0, squares = 0.0, before = 0.0;
  for (const double value : values) {
    const double deviation = std::clamp((value - median) / stddev, -kCut, kCut);
    products += before * deviation;
    squares += deviation * deviation;
    before = deviation;
  }
  return squares > 0.0 ? std::clamp(products / squares, 0.0, kMost) : 0.0;
}

}  // namespace

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double robust_standard_error_of_median(const std::vector<double>& values, double median) {
  return std::sqrt(0.5 * std::numbers::pi / static_cast<double>(values.size())) * robust_stddev(values, median);
}

double autocorrelation_factor(const std::vector<double>& values, double median) {
  constexpr std::size_t kLeast = 8;  // with fewer values the correlation is a guess
  constexpr double kNegligible = 1e-4;
  if (values.size() < kLeast) return 1.0;
  const double correlation = neighbours_correlation(values, median);
  double sum = 0.0;
  for (double power = correlation; power > kNegligible; power *= correlation) sum += std::asin(power);
  return std::sqrt(1.0 + 4.0 / std::numbers::pi * sum);
}

bool StepDrift::is_clear() const {
  return std::abs(relative) > kNoticeable && std::abs(relative) > kDriftErrors * standard_error;
}

std::optional<StepDrift> drift_of(const std::vector<double>& values) {
  constexpr std::size_t kLeast = 6;
  if (values.size() < kLeast) return std::nullopt;
  const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
  const std::vector<double> first(values.begin(), values.begin() + third);
  const std::vector<double> last(values.end() - third, values.end());
  const double before = middle(first);
  const double after = middle(last);
  if (!(std::abs(before) > 0.0)) return std::nullopt;
  const double noise =
      std::hypot(robust_standard_error_of_median(first, before), robust_standard_error_of_median(last, after));
  return StepDrift{after / before - 1.0, noise / std::abs(before)};
}

std::optional<StepEstimate> estimate_steps(const std::vector<double>& values, std::int64_t warmup) {
  if (static_cast<std::int64_t>(values.size()) <= warmup) return std::nullopt;
  const std::vector<double> measured(values.begin() + warmup, values.end());
  StepEstimate result;
  result.steps = static_cast<std::int64_t>(measured.size());
  result.value = middle(measured);
  result.mean = std::accumulate(measured.begin(), measured.end(), 0.0) / static_cast<double>(measured.size());
  result.independent_sem = robust_standard_error_of_median(measured, result.value);
  result.sem = result.independent_sem * autocorrelation_factor(measured, result.value);
  result.drift = drift_of(measured);
  return result;
}

bool StepSeries::add(int rank, StepKey step, double value) { return steps_[step].emplace(rank, value).second; }

std::vector<double> StepSeries::values() const {
  std::vector<double> values;
  for (const auto& [step, ranks] : steps_) values.push_back(*at(step));
  return values;
}

std::optional<double> StepSeries::at(StepKey step) const {
  const auto found = steps_.find(step);
  if (found == steps_.end()) return std::nullopt;
  double sum = 0.0;
  for (const auto& [rank, value] : found->second) sum += value;
  return sum / static_cast<double>(found->second.size());
}

std::vector<StepKey> StepSeries::keys() const {
  std::vector<StepKey> keys;
  for (const auto& [step, ranks] : steps_) keys.push_back(step);
  return keys;
}

}  // namespace krigtune::trial
