#pragma once
#include <array>
#include <span>
#include <vector>

#include "krigtune/cost/machine.h"
#include "krigtune/plan/step_breakdown.h"
#include "krigtune/plan/trace.h"

namespace krigtune {

/// An operation as the clock sees it, or several kernels in a row as one.
struct TimedOperation {
  Stream stream = Stream::kCompute;
  bool collective = false;
  double seconds = 0.0;
  double issue_s = 0.0;                             ///< that the issuing thread takes before it can start
  std::array<std::int32_t, kStreamCount> behind{};  ///< of each stream so many operations are done before it starts
  // Of several kernels:
  double issue_rest_s = 0.0;  ///< for those behind the first
  double least_s = 0.0;       ///< from the beginning of their issuing to their end: kernels wait for being issued
};

/// Executes operations in issue order on the streams of one rank, whose peers do the same at the same time. The compute
/// stream makes 1 / slowdown seconds of progress a second while a collective of another stream runs. Deterministic;
/// times from 0 by OpId.
std::vector<OperationTime> run_clock(std::span<const TimedOperation> operations, double overlap_slowdown);

/// Where a time went, by what went on.
struct ClockTotals {
  double span_s = 0.0;
  double kernels_s = 0.0;         ///< of the compute stream
  double exposed_comm_s = 0.0;    ///< collectives while no kernel ran
  double exposed_copies_s = 0.0;  ///< copies and what else streams did while no kernel ran and nothing was sent
  double idle_s = 0.0;            ///< nothing ran
};
/// Likewise, without times by operation: at the ends of the operations `marks` (ascending, of the compute stream), and
/// at the end.
std::vector<ClockTotals> run_clock_totals(std::span<const TimedOperation> operations, double overlap_slowdown,
                                          std::span<const OpId> marks);

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
