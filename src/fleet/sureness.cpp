// Ranges are the 10 % and 90 % quantiles of published over predicted step times in
// experiments/results/accuracy/published_rows.csv, by kind: tests/fleet/sureness_test.cpp computes them again. Only
// eight published runs have adapters, and all of them were faster than predicted, so the range of adapters reaches from
// the lowest of theirs to the upper end of dense models.
#include "fleet/sureness.h"

#include <algorithm>
#include <cmath>

#include "opinion/known_runs.h"

namespace krigtune::fleet {
namespace {

constexpr StepTimeRange kDense{"dense models", "80 % of 270 published runs of dense models", 270, 0.92, 1.16};
constexpr StepTimeRange kExperts{"models with experts", "80 % of 258 published runs of models with experts", 258, 0.85,
                                 1.36};
constexpr StepTimeRange kHybrids{"hybrid models", "80 % of 58 published runs of hybrid models", 58, 1.0, 1.34};
constexpr StepTimeRange kAdapters{"adapters", "8 published runs with adapters and most of those of dense models", 8,
                                  0.79, 1.16};

}  // namespace

StepTimeRange step_time_range(const workload::Workload& workload) {
  switch (opinion::kind_of(workload)) {
    case opinion::JobKind::kAdapters:
      return kAdapters;
    case opinion::JobKind::kHybrid:
      return kHybrids;
    case opinion::JobKind::kExperts:
      return kExperts;
    case opinion::JobKind::kDense:
      return kDense;
  }
  return kDense;
}

Estimate memory_estimate(double predicted, double log_stddev) {
  constexpr double kOf80Percent = 1.2816;  // standard deviations on each side of the median of a normal distribution
  const double factor = std::exp(kOf80Percent * log_stddev);
  return {predicted, predicted / factor, predicted * factor};
}

}  // namespace krigtune::fleet
