#pragma once
#include <vector>

#include "cuda/handles.h"
#include "krigtune/plan/step_plan.h"

namespace krigtune::cuda {

/// What one rank holds: one allocation on its device, one of pinned memory for what is offloaded, and nothing else
/// while it trains.
class DeviceMemory {
 public:
  /// Fills both with a pattern if `observe`. Throws DeviceError: of exit code kOutOfMemory where memory is missing.
  DeviceMemory(const StepPlan& plan, bool observe);

  std::byte* at(const Buffer& buffer) const;
  std::byte* at(const StepPlan& plan, const Range& range, std::int64_t rank) const;

  /// fp32 values from and to a range of numbers of any type.
  void upload(const StepPlan& plan, const Range& range, std::int64_t rank, const std::vector<float>& values) const;
  std::vector<float> download(const StepPlan& plan, const Range& range, std::int64_t rank) const;
  void clear(const Buffer& buffer) const;

  /// One more than the offset of the place's highest byte that differs from the pattern, a guard behind the arena
  /// included.
  std::int64_t highest_changed_bytes(Place place) const;

 private:
  std::int64_t device_bytes_;  ///< with the guard, likewise the next
  std::int64_t host_bytes_;
  DeviceBytes device_;
  PinnedBytes host_;
};

}  // namespace krigtune::cuda
