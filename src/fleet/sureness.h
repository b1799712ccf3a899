#pragma once
#include "workload/workload.h"

namespace krigtune::fleet {

/// A predicted number, and where 80 % of such predictions lie.
struct Estimate {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;

  Estimate times(double factor) const { return {value * factor, low * factor, high * factor}; }
};

/// How long steps took relative to their predictions in published runs of one kind of job: 80 % of them took between
/// `low` and `high` times as long. `low` is at most 1, so that the prediction itself is always inside.
struct StepTimeRange {
  const char* kind = "";     ///< "dense models"
  const char* subject = "";  ///< of the sentence: "80 % of 270 published runs of dense models"
  int runs = 0;
  double low = 1.0;
  double high = 1.0;

  Estimate time(double predicted) const { return {predicted, predicted * low, predicted * high}; }
  Estimate rate(double predicted) const { return {predicted, predicted / high, predicted / low}; }
};

/// Returns the range of the kind of job that this is.
StepTimeRange step_time_range(const workload::Workload& workload);

/// Returns the interval of a peak of memory whose logarithm has this standard deviation.
Estimate memory_estimate(double predicted, double log_stddev);

}  // namespace krigtune::fleet
