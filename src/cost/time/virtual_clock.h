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

/// An operation as the clock sees it, or several kernels in a row as one.
struct TimedOperation {
  schedule::Stream stream = schedule::Stream::kCompute;
  bool collective = false;
  std::uint8_t lane = 0;  ///< of a collective: those of one lane go one after the other
  double seconds = 0.0;
  double issue_s = 0.0;  ///< that the issuing thread takes before it can start
  std::array<std::int32_t, schedule::kStreamCount>
      behind{};         ///< of each stream so many operations are done before it starts
  double core_s = 0.0;  ///< of a collective: that cores take beside the link; it ends when both have passed
  // Of several kernels:
  double issue_rest_s = 0.0;  ///< for those behind the first
  double least_s = 0.0;       ///< from the beginning of their issuing to their end: kernels wait for being issued
};
inline constexpr std::size_t kLaneCount = 2;

/// What goes on beside each other, and how fast.
struct ClockRules {
  double overlap_slowdown = 1.0;  ///< kernels of the compute stream take so many times as long beside a collective
  bool lanes_share = false;       ///< collectives of two lanes at a time take twice as long: their links are the same
  // CPU ranks:
  double cores = std::numeric_limits<double>::infinity();  ///< that all streams share
  bool sleeping_links = false;  ///< a collective slows kernels only while it takes a core's time
  double wake_s = 0.0;          ///< until a stream that waited for another goes on
};

/// Executes operations in issue order on the streams of one rank, whose peers do the same at the same time.
/// Deterministic; times from 0 by OpId.
std::vector<plan::OperationTime> run_clock(std::span<const TimedOperation> operations, const ClockRules& rules);

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
std::vector<ClockTotals> run_clock_totals(std::span<const TimedOperation> operations, const ClockRules& rules,
                                          std::span<const plan::OpId> marks);

/// One optimizer step before it runs.
struct PredictedStep {
  double step_time_s = 0.0;
  plan::StepBreakdown breakdown;
  std::vector<plan::OperationTime> times;  ///< by OpId
  std::vector<plan::MemoryPoint> memory;   ///< in order of time: buffers between their first and last access
};
/// For a job of so many ranks on that machine.
ClockRules clock_rules(const Machine& machine, const plan::GroupSpan& data, const plan::GroupSpan& tensor);
/// The lane of a group's collectives.
std::uint8_t lane_of(const Machine& machine, schedule::Group group);
PredictedStep predict_step(const plan::StepPlan& plan, const Machine& machine);
/// For trace_json: one rank, with its memory over time.
plan::TracedStep traced(const PredictedStep& step);

}  // namespace krigtune::cost
