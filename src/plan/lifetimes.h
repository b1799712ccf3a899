#pragma once
#include <vector>

#include "krigtune/plan/step_plan.h"
#include "plan_builder.h"

namespace krigtune {

/// When a buffer is in use, seen from the schedule.
struct Lifetime {
  OpId first = -1;        ///< first operation that touches it, in issue order; -1: none
  OpId last = -1;         ///< last one
  VectorClock before{};   ///< what is surely done before any operation that touches it starts
  VectorClock through{};  ///< per stream, the place of its last operation that touches it; 0: none

  /// Every access to this buffer happens before every access to `later`, in every execution.
  bool ends_before(const Lifetime& later) const;
};

/// One per buffer. Persistent buffers live from the first to the last operation.
std::vector<Lifetime> lifetimes(const StepPlan& plan);

/// Bytes alive at each operation, in issue order.
std::vector<std::int64_t> live_bytes(const StepPlan& plan, const std::vector<Lifetime>& lives);

}  // namespace krigtune
