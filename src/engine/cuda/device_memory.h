#pragma once
#include <span>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "plan/step_plan.h"

namespace krigtune::cuda {

/// What one rank holds: one allocation on its device, one of pinned memory for what is offloaded, and nothing else
/// while it trains.
class DeviceMemory {
 public:
  /// Throws DeviceError: of exit code kOutOfMemory where memory is missing.
  /// `buffers`: what NCCL is to do with it; kPlain if it exchanges nothing.
  explicit DeviceMemory(const plan::StepPlan& plan,
                        schedule::NcclKnobs::Buffers buffers = schedule::NcclKnobs::Buffers::kPlain);

  /// Makes all of the device's numbers random-looking, of a size near 1 as bf16, fp16 and fp32: what is timed on zeros
  /// is too fast. On the default stream.
  void fill_with_numbers() const;
  /// Fills both with what highest_changed_bytes looks for.
  void fill_with_pattern() const;

  /// Of the allocation on the device.
  std::int64_t device_bytes() const { return device_bytes_; }
  /// The allocation on the device.
  std::span<std::byte> device() const { return {device_.get(), static_cast<std::size_t>(device_bytes_)}; }
  std::byte* at(const plan::Buffer& buffer) const;
  std::byte* at(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank) const;

  /// fp32 values from and to a range of numbers of any type.
  void upload(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank,
              const std::vector<float>& values) const;
  std::vector<float> download(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank) const;
  void clear(const plan::Buffer& buffer) const;

  /// One more than the offset of the place's highest byte that differs from the pattern, a guard behind the arena
  /// included.
  std::int64_t highest_changed_bytes(schedule::Place place) const;

 private:
  std::int64_t device_bytes_;  ///< with the guard, likewise the next
  std::int64_t host_bytes_;
  DeviceBytes device_;
  PinnedBytes host_;
};

}  // namespace krigtune::cuda
