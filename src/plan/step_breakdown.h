#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "plan/step_plan.h"

namespace krigtune::plan {

/// When one rank executed one operation, in seconds of the Clock.
struct OperationTime {
  double queued_s = 0.0;  ///< when its stream reached it
  double start_s = 0.0;   ///< when its waits for other streams were over
  double ready_s = 0.0;   ///< collectives: when the data of all ranks had arrived; others: start_s
  double end_s = 0.0;
};

/// Activities that may run in parallel with the kernels of the compute stream.
enum class Activity : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kCopies, kHost };
inline constexpr int kActivityCount = 5;
inline constexpr int kCollectiveKinds = 3;  ///< the first activities, up to this number, are collectives
const char* to_string(Activity activity);   ///< all_reduce, reduce_scatter, all_gather, copies, host_work
/// Returns the activity of an operation that is a collective or runs outside the compute stream: collectives by kind,
/// computations of the host stream, and copies, which include everything else on the communication streams.
Activity activity_of(const Operation& operation);

struct ActivityTime {
  double time_s = 0.0;     ///< sum over operations; for collectives, from the moment when all data are ready
  double exposed_s = 0.0;  ///< part of it while no kernel of the compute stream ran
};

/// Where the time of a step went on one rank. Phases, exposed times, waiting and idle time add up to span_s.
struct StepBreakdown {
  double span_s = 0.0;                                    ///< from the first operation to the end of the last one
  std::array<double, schedule::kPhaseCount> compute_s{};  ///< kernels of the compute stream, by phase
  std::array<ActivityTime, kActivityCount> activities{};
  double waiting_s = 0.0;  ///< no kernel ran and nothing was sent: collectives waited for other ranks
  double idle_s = 0.0;     ///< nothing ran at all: threads were waking up or had no core

  /// Returns the seconds in which the compute stream had to wait for communication: exposed collectives and waiting_s.
  double exposed_comm_s() const;
  double communication_s() const;  ///< seconds of all collectives
  /// Returns the part of the communication that kernels hid, 1 - exposed / total, without waiting for other ranks; 0 if
  /// there was no communication.
  double overlap_fraction() const;
};

/// `times`: by OpId, for one rank and one step.
StepBreakdown break_down(const StepPlan& plan, std::span<const OperationTime> times);

}  // namespace krigtune::plan
