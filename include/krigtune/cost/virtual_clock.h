#pragma once
#include <array>
#include <span>
#include <vector>

#include "krigtune/cost/machine.h"
#include "krigtune/plan/step_breakdown.h"
#include "krigtune/plan/trace.h"

namespace krigtune {

/// An operation as the clock sees it: how long, on which stream, behind what.
struct TimedOperation {
  Stream stream = Stream::kCompute;
  bool collective = false;
  double seconds = 0.0;
  double issue_s = 0.0;         ///< that the issuing thread takes for it
  std::span<const OpId> waits;  ///< of other streams, earlier in the list
};

/// Executes operations in issue order on the streams of one rank, whose peers do the same at the same time. The compute
/// stream makes 1 / slowdown seconds of progress a second while a collective of another stream runs. Deterministic;
/// times from 0 by OpId.
std::vector<OperationTime> run_clock(std::span<const TimedOperation> operations, double overlap_slowdown);

/// Bytes of one place in use from a moment on.
struct MemoryPoint {
  double at_s = 0.0;
  std::array<std::int64_t, kPlaceCount> bytes{};
};

/// One optimizer step before it runs.
struct PredictedStep {
  double step_time_s = 0.0;
  StepBreakdown breakdown;
  std::vector<OperationTime> times;  ///< by OpId
  std::vector<MemoryPoint> memory;   ///< in order of time: buffers between their first and last access
};
PredictedStep predict_step(const StepPlan& plan, const Machine& machine);

}  // namespace krigtune
