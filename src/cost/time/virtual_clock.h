#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cost/machine.h"
#include "plan/step_breakdown.h"
#include "plan/trace.h"

namespace krigtune::cost {

/// An operation as the clock executes it; several consecutive kernels may be combined into one.
struct TimedOperation {
  schedule::Stream stream = schedule::Stream::kCompute;
  bool collective = false;
  std::uint8_t lane = 0;  ///< for a collective: collectives of the same lane run one after the other
  double seconds = 0.0;
  double issue_s = 0.0;  ///< time of the issuing thread before it can start
  std::array<std::int32_t, schedule::kStreamCount>
      behind{};         ///< for each stream, how many of its operations must be done before it starts
  double core_s = 0.0;  ///< for a collective: core time in parallel with the link; it ends when both are over
  // For several kernels:
  double issue_rest_s = 0.0;  ///< for the kernels after the first
  double least_s = 0.0;       ///< from the beginning of issuing to the end, because kernels wait to be issued
};
inline constexpr std::size_t kLaneCount = 2;

/// How concurrent operations slow each other down.
struct ClockRules {
  double overlap_slowdown = 1.0;  ///< factor on the time of the compute stream's kernels during a collective
  /// Concurrent collectives of two lanes take twice as long, because they share the links.
  bool lanes_share = false;
  // CPU ranks:
  double cores = std::numeric_limits<double>::infinity();  ///< shared by all streams
  bool sleeping_links = false;  ///< a collective slows kernels down only while it uses a core
  double wake_s = 0.0;          ///< until a stream that waited for another continues
};

/// Executes operations in issue order on the streams of one rank, whose peers do the same at the same time.
/// Deterministic. Returns times from 0, by OpId.
std::vector<plan::OperationTime> run_clock(std::span<const TimedOperation> operations, const ClockRules& rules);

/// How the elapsed time divides into activities.
struct ClockTotals {
  double span_s = 0.0;
  double kernels_s = 0.0;         ///< kernels of the compute stream
  double exposed_comm_s = 0.0;    ///< collectives while no kernel ran
  double exposed_copies_s = 0.0;  ///< copies and other work of the streams while no kernel ran and nothing was sent
  double idle_s = 0.0;            ///< nothing ran
};
/// Returns the totals at the ends of the operations `marks` (ascending, of the compute stream) and at the end, without
/// times by operation.
std::vector<ClockTotals> run_clock_totals(std::span<const TimedOperation> operations, const ClockRules& rules,
                                          std::span<const plan::OpId> marks);

/// A prediction of one optimizer step.
struct PredictedStep {
  double step_time_s = 0.0;
  plan::StepBreakdown breakdown;
  std::vector<plan::OperationTime> times;  ///< by OpId
  std::vector<plan::MemoryPoint> memory;   ///< in order of time: buffers between their first and last access
};
/// Returns the rules for a job with these groups on that machine.
ClockRules clock_rules(const Machine& machine, const plan::GroupSpan& data, const plan::GroupSpan& tensor);
/// Returns the lane of a group's collectives.
std::uint8_t lane_of(const Machine& machine, schedule::Group group);
PredictedStep predict_step(const plan::StepPlan& plan, const Machine& machine);
/// Converts a step for trace_json: one rank, with its memory over time.
plan::TracedStep traced(const PredictedStep& step);

}  // namespace krigtune::cost
