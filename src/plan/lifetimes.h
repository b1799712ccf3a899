#pragma once
#include <vector>

#include "krigtune/plan/step_plan.h"
#include "plan_builder.h"

namespace krigtune {

/// When a buffer is in use, seen from the schedule.
struct Lifetime {
  OpId first = -1;        ///< first operation that touches it, in issue order; -1: none
  VectorClock before{};   ///< what is surely done before any operation that touches it starts
  VectorClock through{};  ///< per stream, the place of its last operation that touches it; 0: none

  /// Every access to this buffer happens before every access to `later`, in every execution.
  bool ends_before(const Lifetime& later) const;
};

struct Lifetimes {
  std::vector<Lifetime> buffers;    ///< persistent buffers live from the first to the last operation
  std::vector<OpId> compute;        ///< the operations of the compute stream, in order
  std::vector<VectorClock> before;  ///< for each of them: what is surely done before it starts
};
Lifetimes lifetimes(const StepPlan& plan);

/// For each operation of the compute stream, the bytes of the device's buffers that may be in use when it runs: begun
/// in issue order and not surely finished. So what is still travelling counts, too.
std::vector<std::int64_t> live_bytes(const StepPlan& plan, const Lifetimes& lives);
/// Whether the buffer is among them, at the `at`-th operation of the compute stream.
bool is_live(const Lifetimes& lives, std::size_t buffer, std::size_t at);

}  // namespace krigtune
