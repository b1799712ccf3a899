#pragma once
#include <span>

#include "workload/hardware.h"

namespace krigtune::workload {

/// What an operation counts, and how long it took.
struct RateSample {
  double flops = 0.0;
  double bytes = 0.0;
  double seconds = 0.0;
};

/// By what the class is believed to be bound.
enum class BoundBy { kFlops, kBytes, kBoth };

/// The rate that fits the samples best in the mean of |log(measured / fitted)|: some that were disturbed, or that are
/// of another kind, do not matter. Samples without time or without work are left out; with none left all is free.
ClassRate fit_rate(std::span<const RateSample> samples, BoundBy bound);

/// Splits a fitted launch: `launch_s` of it is the launch of any kernel, the rest becomes half_flops. A shorter launch
/// stays as it is.
void split_launch(ClassRate& rate, double launch_s);

}  // namespace krigtune::workload
