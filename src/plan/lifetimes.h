#pragma once
#include <array>
#include <vector>

#include "plan/plan_builder.h"
#include "plan/step_plan.h"

namespace krigtune::plan {

/// When a buffer is in use, according to the schedule.
struct Lifetime {
  OpId first = -1;        ///< first operation that accesses it, in issue order; -1: none
  OpId released = 0;      ///< all operations from this one on certainly run after its last access
  VectorClock before{};   ///< operations that are certainly done before any access to it starts
  VectorClock from{};     ///< for each stream, the position of the first operation that accesses it; 0: none
  VectorClock through{};  ///< for each stream, the position of the last one

  /// Returns whether every access to this buffer happens before every access to `later`, in every execution.
  bool ends_before(const Lifetime& later) const;
};

struct Lifetimes {
  std::vector<Lifetime> buffers;    ///< persistent buffers live from the first to the last operation
  std::vector<VectorClock> before;  ///< for each operation: what is certainly done before it starts
  std::array<std::vector<OpId>, schedule::kStreamCount> streams;
};
Lifetimes lifetimes(const StepPlan& plan);

/// The moment of an execution at which the most bytes of a place are in use.
struct LivePeak {
  std::int64_t bytes = 0;
  OpId at = -1;               ///< an operation that runs at that moment; -1: a plan without operations
  std::vector<bool> is_live;  ///< for each buffer
};
/// Returns the largest sum of bytes that are in use at the same time: no layout needs less.
LivePeak live_peak(const StepPlan& plan, const Lifetimes& lives, schedule::Place place);

}  // namespace krigtune::plan
