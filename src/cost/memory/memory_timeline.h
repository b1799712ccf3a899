#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/memory/memory_profile.h"
#include "cost/pipeline.h"
#include "schedule/setting.h"
#include "schedule/walk.h"

namespace krigtune::cost {

/// Counts the bytes of parameters that stage 3 has gathered, and determines when gradients on their way to the host
/// must have arrived before them.
class GatheredMemory final : public schedule::GatheringSink {
 public:
  explicit GatheredMemory(const schedule::Setting& setting) : setting_(setting) {}

  void gather(std::span<const schedule::GatheredItem* const> items) override;
  void let_go(const schedule::GatheredItem& item) override;

  /// `sent`: number of reductions issued before the next gather.
  void before_use(std::size_t sent) { sent_ = sent; }
  /// Returns how many reductions are certainly finished before the parameters of the current use have arrived: copies
  /// of parameters from the host run behind copies of gradients to it.
  std::size_t reductions_over(std::span<const schedule::GatheredItem> current) const;
  /// The current use reads `tensor` for the last time; with `is_last`, all of its tensors.
  void last_read(std::span<const schedule::GatheredItem> current, int tensor, bool is_last);
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Slot {
    bool counted = false;    ///< included in bytes_
    std::size_t behind = 0;  ///< number of reductions before it
  };
  void release(const schedule::GatheredItem& item);

  const schedule::Setting& setting_;
  std::vector<Slot> slots_;
  std::size_t sent_ = 0;
  std::int64_t bytes_ = 0;
};

/// Counts the bytes of gradients until their bucket was reduced, and of the buckets into which they are packed.
class ReductionMemory final : public schedule::ReductionSink {
 public:
  explicit ReductionMemory(const schedule::Setting& setting);
  /// Returns whether only the kept gradients take memory, so that the walk need not report to this object.
  static bool is_idle(const schedule::ZeroPolicy& policy);
  /// Call before the first micro-step of `by`.
  void start(const schedule::Reduction& by);

  void pack(const schedule::Reduction& by, int t, bool completes) override;
  void reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) override;
  void end_micro_step() override;

  /// Call when the gradient is written for the first time.
  void first_gradient(int t);
  std::int64_t bytes() const { return bytes_; }
  std::int64_t grown_bytes() const { return grown_bytes_; }  ///< the part for gradients that exist until the update
  /// Returns the bytes before the compute stream waited for what the last operation sent.
  std::int64_t bytes_before_wait() const { return bytes_ + just_released_bytes_; }
  void next_operation() { just_released_bytes_ = 0; }
  /// Returns the maximum of the bytes while a gradient was copied into its bucket since the last call; 0 if there was
  /// no copy.
  std::int64_t most_while_copied();
  /// Returns the number of reductions issued.
  std::size_t sent() const { return entered_.size(); }
  /// The first `count` reductions are finished.
  void release(std::size_t count);

 private:
  void send_packed(const schedule::Reduction& by, std::span<const int> tensors);
  void enter(std::int64_t held_bytes);
  void release_packed();
  std::int64_t transient_bytes(int t) const {
    return policy_.shards_gradients ? setting_.tensors.padded(t) * setting_.type_bytes() : 0;
  }

  const schedule::Setting& setting_;
  const schedule::ZeroPolicy& policy_;
  std::int64_t bucket_bytes_ = 0;
  std::vector<std::int64_t> entered_;  ///< bytes that each reduction holds until something has waited for it
  std::size_t released_ = 0;           ///< number of them that are finished
  struct Packed {
    bool here = false;
    std::size_t entry = 0;  ///< the last reduction that uses it
  };
  std::vector<Packed> packed_;
  std::size_t sends_ = 0;         ///< packed buckets sent in this micro-step
  std::size_t packed_sends_ = 0;  ///< packed buckets sent in a whole micro-step
  std::int64_t bytes_ = 0;
  std::int64_t grown_bytes_ = 0;
  std::int64_t just_released_bytes_ = 0;
  std::int64_t most_while_copied_ = 0;
};

/// The moment of a step with the largest memory beyond what is always in use.
struct StepPeak {
  MomentBytes bytes;
  schedule::Phase phase = schedule::Phase::kForward;
  std::int64_t layer = -1;  ///< -1: embedding or head
  std::int64_t micro_step = 0;
  bool at_head = false;
};

/// Returns the number of micro-steps after which a step repeats itself, at most the number of its micro-steps.
std::int64_t distinct_micro_steps(const schedule::ZeroPolicy& policy, const schedule::Knobs& knobs);

/// Returns the peak of activations, logits, workspace, gathered parameters and gradients on their way. It walks the
/// schedule's distinct micro-steps, for a pipeline rank that keeps the activations of several at once.
StepPeak step_peak(const MemoryProfile& profile, const schedule::Setting& setting, const InFlight& in_flight = {});

}  // namespace krigtune::cost
