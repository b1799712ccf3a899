#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "plan/step_plan.h"

namespace krigtune::plan {

/// When one rank executed one operation: seconds of the Clock.
struct OperationTime {
  double queued_s = 0.0;  ///< its stream took it up
  double start_s = 0.0;   ///< its waits for other streams were over
  double ready_s = 0.0;   ///< collectives: the data of all ranks were there; others: start_s
  double end_s = 0.0;
};

/// What may go on beside the kernels of the compute stream.
enum class Activity : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kCopies, kHost };
inline constexpr int kActivityCount = 5;
inline constexpr int kCollectiveKinds = 3;  ///< the first so many activities are collectives
const char* to_string(Activity activity);   ///< all_reduce, reduce_scatter, all_gather, copies, host_work
/// Of an operation that is a collective or not of the compute stream: collectives by kind, what the host stream
/// computes, and copies, by which anything else on the communication streams is meant as well.
Activity activity_of(const Operation& operation);

struct ActivityTime {
  double time_s = 0.0;     ///< operation by operation; collectives: from the moment at which all data were ready
  double exposed_s = 0.0;  ///< of it: while no kernel of the compute stream ran
};

/// Where the time of a step went on one rank. Phases, exposed times, waiting and idle time add up to span_s.
struct StepBreakdown {
  double span_s = 0.0;                                    ///< from the first operation to the end of the last one
  std::array<double, schedule::kPhaseCount> compute_s{};  ///< kernels of the compute stream, by phase
  std::array<ActivityTime, kActivityCount> activities{};
  double waiting_s = 0.0;  ///< no kernel ran and nothing was sent: collectives waited for other ranks
  double idle_s = 0.0;     ///< no kernel ran, and nothing else: threads that wake up or have no core

  /// Seconds in which the compute stream had to wait for communication: exposed collectives and waiting_s.
  double exposed_comm_s() const;
  double communication_s() const;  ///< of all collectives
  /// Part of the communication that kernels hid: 1 - exposed / total, waiting for other ranks apart; 0 where there is
  /// none.
  double overlap_fraction() const;
};

/// `times` by OpId, of one rank and one step.
StepBreakdown break_down(const StepPlan& plan, std::span<const OperationTime> times);

}  // namespace krigtune::plan
