#pragma once
#include <span>

#include "workload/hardware.h"

namespace krigtune::workload {

/// The work of one operation, and the time that it took.
struct RateSample {
  double flops = 0.0;
  double bytes = 0.0;
  double seconds = 0.0;
};

/// What limits the speed of the class.
enum class BoundBy { kFlops, kBytes, kBoth };

/// Returns the rate that minimises the mean of |log(measured / fitted)|, so that a few disturbed samples, or samples of
/// another kind, do not matter. Samples without time or without work are ignored; if none remain, the rate makes
/// everything free.
ClassRate fit_rate(std::span<const RateSample> samples, BoundBy bound);

/// Splits a fitted launch time: `launch_s` is the launch of any kernel, and the rest becomes half_flops. A launch time
/// shorter than that does not change.
void split_launch(ClassRate& rate, double launch_s);

}  // namespace krigtune::workload
