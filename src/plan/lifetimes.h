#pragma once
#include <array>
#include <vector>

#include "plan/plan_builder.h"
#include "plan/step_plan.h"

namespace krigtune::plan {

/// When a buffer is in use, seen from the schedule.
struct Lifetime {
  OpId first = -1;        ///< first operation that touches it, in issue order; -1: none
  OpId released = 0;      ///< from this operation on, all are surely behind its last access
  VectorClock before{};   ///< what is surely done before any operation that touches it starts
  VectorClock from{};     ///< per stream, the place of its first operation that touches it; 0: none
  VectorClock through{};  ///< likewise of its last one

  /// Every access to this buffer happens before every access to `later`, in every execution.
  bool ends_before(const Lifetime& later) const;
};

struct Lifetimes {
  std::vector<Lifetime> buffers;    ///< persistent buffers live from the first to the last operation
  std::vector<VectorClock> before;  ///< by operation: what is surely done before it starts
  std::array<std::vector<OpId>, schedule::kStreamCount> streams;
};
Lifetimes lifetimes(const StepPlan& plan);

/// A moment of an execution in which most bytes of a place are in use.
struct LivePeak {
  std::int64_t bytes = 0;
  OpId at = -1;               ///< an operation that runs then; -1: a plan without operations
  std::vector<bool> is_live;  ///< by buffer
};
/// The largest sum of bytes that are in use together: no layout needs less.
LivePeak live_peak(const StepPlan& plan, const Lifetimes& lives, schedule::Place place);

}  // namespace krigtune::plan
