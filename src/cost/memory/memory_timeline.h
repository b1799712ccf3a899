#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/memory/memory_profile.h"
#include "schedule/setting.h"
#include "schedule/walk.h"

namespace krigtune::cost {

/// Bytes of parameters that stage 3 has gathered, and when gradients on their way to the host must have arrived for
/// them.
class GatheredMemory final : public schedule::GatheringSink {
 public:
  explicit GatheredMemory(const schedule::Setting& setting) : setting_(setting) {}

  void gather(std::span<const schedule::GatheredItem* const> items) override;
  void let_go(const schedule::GatheredItem& item) override;

  /// `sent`: how many reductions have been issued before what is gathered next.
  void before_use(std::size_t sent) { sent_ = sent; }
  /// How many reductions are over for sure before what the current use reads is there: copies of parameters from the
  /// host run behind those of gradients to it.
  std::size_t reductions_over(std::span<const schedule::GatheredItem> current) const;
  /// The current use reads `tensor` for the last time, and all of its tensors where `is_last`.
  void last_read(std::span<const schedule::GatheredItem> current, int tensor, bool is_last);
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Slot {
    bool counted = false;    ///< in bytes_
    std::size_t behind = 0;  ///< so many reductions
  };
  void release(const schedule::GatheredItem& item);

  const schedule::Setting& setting_;
  std::vector<Slot> slots_;
  std::size_t sent_ = 0;
  std::int64_t bytes_ = 0;
};

/// Bytes of gradients until their bucket was reduced, and of the buckets that they are packed into.
class ReductionMemory final : public schedule::ReductionSink {
 public:
  explicit ReductionMemory(const schedule::Setting& setting);
  /// No bytes beyond the gradients that are kept: the walk need not be told to it.
  static bool is_idle(const schedule::ZeroPolicy& policy);
  /// Before the first micro-step of `by`.
  void start(const schedule::Reduction& by);

  void pack(const schedule::Reduction& by, int t, bool completes) override;
  void reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) override;
  void end_micro_step() override;

  /// The gradient is written for the first time.
  void first_gradient(int t);
  std::int64_t bytes() const { return bytes_; }
  std::int64_t grown_bytes() const { return grown_bytes_; }  ///< of them: gradients that are there until the update
  /// The bytes before the compute stream has waited for what the last operation sent.
  std::int64_t bytes_before_wait() const { return bytes_ + just_released_bytes_; }
  void next_operation() { just_released_bytes_ = 0; }
  /// Most bytes while a gradient was copied into its bucket since this was asked last; 0: none was.
  std::int64_t most_while_copied();
  /// Reductions issued.
  std::size_t sent() const { return entered_.size(); }
  /// The first `count` reductions are over.
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
  std::vector<std::int64_t> entered_;  ///< bytes that each reduction holds until somebody has waited for it
  std::size_t released_ = 0;           ///< so many of them are over
  struct Packed {
    bool here = false;
    std::size_t entry = 0;  ///< its last reduction
  };
  std::vector<Packed> packed_;
  std::size_t sends_ = 0;         ///< of packed buckets in this micro-step
  std::size_t packed_sends_ = 0;  ///< in a whole one
  std::int64_t bytes_ = 0;
  std::int64_t grown_bytes_ = 0;
  std::int64_t just_released_bytes_ = 0;
  std::int64_t most_while_copied_ = 0;
};

/// The moment of a step at which most bytes are in use beside what is there all the time.
struct StepPeak {
  MomentBytes bytes;
  schedule::Phase phase = schedule::Phase::kForward;
  std::int64_t layer = -1;  ///< -1: embedding or head
  std::int64_t micro_step = 0;
  bool at_head = false;
};

/// Micro-steps after which a step repeats itself, and no more than it has.
std::int64_t distinct_micro_steps(const schedule::ZeroPolicy& policy, const schedule::Knobs& knobs);

/// Activations, logits, workspace, gathered parameters, gradients on their way: the schedule's distinct micro-steps
/// walked, of a stage that keeps the activations of `in_flight` micro-batches at once.
StepPeak step_peak(const MemoryProfile& profile, const schedule::Setting& setting, std::int64_t in_flight = 1);

}  // namespace krigtune::cost
