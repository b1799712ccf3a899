#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

// What the steps of a job tell: one value a step, those behind the warm-up make the estimate. Every runner that
// measures step by step uses this.
namespace krigtune::trial {

/// Of at least one value: the one in the middle, or the mean of the two in the middle.
double middle(std::vector<double> values);

/// Standard error of the median of independent values, from their absolute deviations. See step_series.cpp.
double robust_standard_error_of_median(const std::vector<double>& values, double median);

/// By how much more the median of successive values varies because they resemble one another: 1 or more, a factor of
/// the standard error.
double autocorrelation_factor(const std::vector<double>& values, double median);

/// How the steps change from the first to the last third of them. Empty: fewer than 6 steps.
struct StepDrift {
  double relative = 0.0;        ///< 0.1: the last third is 10 % larger
  double standard_error = 0.0;  ///< of `relative`
  /// More than chance, and more than is worth mentioning: the warm-up has not ended, or something gets slower.
  bool is_clear() const;
};
std::optional<StepDrift> drift_of(const std::vector<double>& values);

struct StepEstimate {
  double value = 0.0;  ///< median
  double mean = 0.0;
  double independent_sem = 0.0;  ///< standard error of the median as if the steps knew nothing of one another
  double sem = 0.0;              ///< likewise, with their autocorrelation
  std::int64_t steps = 0;
  std::optional<StepDrift> drift;
};
/// Of all but the first `warmup` values. Empty: there are no others.
std::optional<StepEstimate> estimate_steps(const std::vector<double>& values, std::int64_t warmup);

/// Which step a value is of. Jobs that count anew (each epoch from 0) begin a new lap.
struct StepKey {
  std::int64_t lap = 0;
  double iteration = 0.0;
  auto operator<=>(const StepKey&) const = default;
};

/// The values of one metric by step. Each rank counts once a step: its first value; the step's is the mean of its
/// ranks'.
class StepSeries {
 public:
  /// False: the rank has a value of this step already.
  bool add(int rank, StepKey step, double value);
  std::int64_t count() const { return static_cast<std::int64_t>(steps_.size()); }
  std::vector<double> values() const;  ///< in the order of the steps
  std::optional<double> at(StepKey step) const;
  std::vector<StepKey> keys() const;

 private:
  std::map<StepKey, std::map<int, double>> steps_;
};

}  // namespace krigtune::trial
