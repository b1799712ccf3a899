#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "core/clock.h"
#include "engine/trainer.h"
#include "programs/bench/step_times.h"

namespace krigtune::bench {

struct MeasureOptions {
  double warmup_s = 2.0;    ///< lower limit, with at least 3 steps; longer until steps are steady, see measure.cpp
  double measure_s = 10.0;  ///< no step begins later than this after the warm-up (except the first one)
  /// After 10 steps, the measurement ends once half the 95 % confidence interval of the median is within this fraction
  /// of it.
  double target = 0.01;
  std::optional<std::int64_t> steps{};  ///< if set, the exact number of steps in all; the first few are the warm-up
};

enum class MeasurePhase : std::uint8_t { kWarmUp, kMeasure };
const char* to_string(MeasurePhase phase);  ///< warm-up, measure

/// Why a measurement ended. kNoLongerShrinks: more steps would not narrow the interval.
enum class Stopped : std::uint8_t { kPrecise, kNoLongerShrinks, kTimeIsOver, kStepsAreDone, kDiverged };
const char* to_string(Stopped stopped);  ///< precise, no_longer_shrinks, time, steps, diverged

/// The state of a measurement after a step.
struct StepReport {
  MeasurePhase phase{};
  std::int64_t step = 0;                  ///< counted from 1 over both phases
  const engine::StepResult& result;       ///< of this step
  std::optional<double> provisional_s{};  ///< median step time, from three measured steps on
  /// Its standard error, at least that of the 95 % interval. Updated after five steps, and then whenever there are a
  /// tenth more.
  std::optional<double> provisional_sem_s{};
  std::int64_t measured_steps = 0;
};
using OnStep = std::function<void(const StepReport&)>;

struct Measurement {
  std::int64_t steps = 0;           ///< including the warm-up
  std::int64_t measured_steps = 0;  ///< number of steps whose times were measured
  bool steady = false;              ///< the warm-up ended because steps were steady
  Stopped stopped{};
  double step_time_s = 0.0;       ///< median
  double step_time_sem_s = 0.0;   ///< within this run
  Interval step_time_interval_s;  ///< 95 % interval of the median, within this run
  double step_time_p10_s = 0.0;
  double step_time_p90_s = 0.0;
  double step_time_mean_s = 0.0;
  double step_time_mad_s = 0.0;
  double autocorrelation_time = 1.0;  ///< in steps
  std::int64_t outliers = 0;          ///< flagged, but included in all statistics
  double drift_per_step_s = 0.0;
  double drift_per_minute = 0.0;        ///< as a fraction of the median
  double exposed_comm_s = 0.0;          ///< median over steps of the largest over ranks
  double median_rank_kernels_s = 0.0;   ///< median over steps of the StepResult's
  double slowest_rank_kernels_s = 0.0;  ///< median over steps of the StepResult's
  plan::StepBreakdown breakdown;        ///< medians of rank 0
  double loss_first = 0.0;
  double loss_last = 0.0;
  bool diverged = false;  ///< the run ended because a loss was not finite
};

/// Calls `step` as often as the options require, and `on_step` after each. Reads the clock, but never waits for it.
Measurement measure(const std::function<engine::StepResult()>& step, const Clock& clock, const MeasureOptions& options,
                    const OnStep& on_step = {});

/// Returns the median time of up to `most_steps` steps after two warm-up steps, for about `seconds`; measures at least
/// one.
double median_step_time_s(const std::function<engine::StepResult()>& step, const Clock& clock, std::int64_t most_steps,
                          double seconds);

}  // namespace krigtune::bench
