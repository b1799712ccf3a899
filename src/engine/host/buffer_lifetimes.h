#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "host/arena.h"
#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// In the AddressSanitizer build, opens the bytes of a buffer while the step uses it, and nothing else: from its first
/// use to the end of its last one; persistent buffers always. Gaps and the guard stay closed. Otherwise it does
/// nothing.
class BufferLifetimes {
 public:
  /// Both must outlive it.
  BufferLifetimes(const StepPlan& plan, const RankMemory& memory);

  void begin_step();
  void begin_use(const std::vector<BufferId>& buffers);
  void end_use(const std::vector<BufferId>& buffers);

 private:
  const StepPlan& plan_;
  const RankMemory& memory_;
  std::vector<int> uses_;                            ///< by buffer, in one step
  std::unique_ptr<std::atomic<int>[]> still_to_go_;  ///< by buffer
};

}  // namespace krigtune
