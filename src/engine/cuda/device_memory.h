#pragma once
#include <span>
#include <vector>

#include "engine/cuda/runtime/handles.h"
#include "plan/step_plan.h"

namespace krigtune::cuda {

/// The memory of one rank: one allocation on its device and one of pinned memory for offloaded buffers. A rank
/// allocates nothing else while it trains.
class DeviceMemory {
 public:
  /// Allocates the memory. `buffers` says how NCCL will use it; kPlain if nothing is exchanged. Throws DeviceError,
  /// with the exit code kOutOfMemory if there is too little memory.
  explicit DeviceMemory(const plan::StepPlan& plan,
                        schedule::NcclKnobs::Buffers buffers = schedule::NcclKnobs::Buffers::kPlain);

  /// Fills the device's memory with random-looking numbers that are of a size near 1 as bf16, fp16 and fp32, because
  /// kernels that are timed on zeros are too fast. Runs on the default stream.
  void fill_with_numbers() const;
  /// Fills both allocations with the pattern that highest_changed_bytes looks for.
  void fill_with_pattern() const;

  /// Returns the size of the allocation on the device.
  std::int64_t device_bytes() const { return device_bytes_; }
  /// Returns the allocation on the device.
  std::span<std::byte> device() const { return {device_.get(), static_cast<std::size_t>(device_bytes_)}; }
  std::byte* at(const plan::Buffer& buffer) const;
  std::byte* at(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank) const;

  /// Copy fp32 values to and from a range of numbers of any type.
  void upload(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank,
              const std::vector<float>& values) const;
  std::vector<float> download(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank) const;
  void clear(const plan::Buffer& buffer) const;

  /// Returns one more than the offset of the highest byte in this place that differs from the pattern, including a
  /// guard region behind the arena.
  std::int64_t highest_changed_bytes(schedule::Place place) const;

 private:
  std::int64_t device_bytes_;  ///< these two include the guard
  std::int64_t host_bytes_;
  DeviceBytes device_;
  PinnedBytes host_;
};

}  // namespace krigtune::cuda
