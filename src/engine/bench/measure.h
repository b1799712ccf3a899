#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "bench/step_times.h"
#include "krigtune/core/clock.h"
#include "krigtune/engine/trainer.h"

namespace krigtune {

struct MeasureOptions {
  double warmup_s = 2.0;    ///< at least so long, and at least 3 steps
  double measure_s = 10.0;  ///< no step is started later than this after the warm-up (but the first one)
  /// Ends earlier, after 10 steps, once half the 95 % confidence interval of the median is within this fraction of it.
  double target = 0.01;
  std::optional<std::int64_t> steps{};  ///< exactly so many in all instead, the first few of them as warm-up
};

struct Measurement {
  std::int64_t steps = 0;  ///< with the warm-up
  std::int64_t measured_steps = 0;
  double step_time_s = 0.0;  ///< median
  double step_time_sem_s = 0.0;
  Interval step_time_interval_s;  ///< 95 % of the median
  double step_time_p10_s = 0.0;
  double step_time_p90_s = 0.0;
  double exposed_comm_s = 0.0;  ///< median
  CollectiveTimes collectives;  ///< medians
  double loss_first = 0.0;
  double loss_last = 0.0;
  bool diverged = false;  ///< a loss was not finite: ended there
};

/// Calls `step` as often as the options say. The clock is read, never waited for.
Measurement measure(const std::function<StepResult()>& step, const Clock& clock, const MeasureOptions& options);

}  // namespace krigtune
