#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

// Statistics of a job's steps: one value per step, and an estimate from those after the warm-up. Every runner that
// measures step by step uses this.
namespace krigtune::trial {

/// Returns the median of at least one value; for an even number, the mean of the middle two.
double middle(std::vector<double> values);

/// Returns the standard error of the median of independent values, from their absolute deviations. See step_series.cpp.
double robust_standard_error_of_median(const std::vector<double>& values, double median);

/// Returns the factor, at least 1, by which correlation between successive values increases the standard error of the
/// median.
double autocorrelation_factor(const std::vector<double>& values, double median);

/// The change from the first to the last third of the steps. drift_of returns nothing for fewer than 6 steps.
struct StepDrift {
  double relative = 0.0;        ///< 0.1: the last third is 10 % larger
  double standard_error = 0.0;  ///< of `relative`
  /// Returns whether it is larger than chance and worth mentioning: the warm-up has not ended, or something is getting
  /// slower.
  bool is_clear() const;
};
std::optional<StepDrift> drift_of(const std::vector<double>& values);

struct StepEstimate {
  double value = 0.0;  ///< median
  double mean = 0.0;
  double independent_sem = 0.0;  ///< standard error of the median if the steps were independent
  double sem = 0.0;              ///< standard error with their autocorrelation
  std::int64_t steps = 0;
  std::optional<StepDrift> drift;
};
/// Estimates from all but the first `warmup` values. Empty if there are no others.
std::optional<StepEstimate> estimate_steps(const std::vector<double>& values, std::int64_t warmup);

/// The step of a value. Jobs that restart their count (each epoch from 0) begin a new lap.
struct StepKey {
  std::int64_t lap = 0;
  double iteration = 0.0;
  auto operator<=>(const StepKey&) const = default;
};

/// The values of one metric by step. Only the first value of each rank counts, and a step's value is the mean over its
/// ranks.
class StepSeries {
 public:
  /// Returns false if the rank already has a value for this step.
  bool add(int rank, StepKey step, double value);
  std::int64_t count() const { return static_cast<std::int64_t>(steps_.size()); }
  std::vector<double> values() const;  ///< in the order of the steps
  std::optional<double> at(StepKey step) const;
  std::vector<StepKey> keys() const;

 private:
  std::map<StepKey, std::map<int, double>> steps_;
};

}  // namespace krigtune::trial
