#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/setting.h"

namespace krigtune::schedule {

class Reduction;

/// Receives the decisions about complete gradients. `by` is the reduction that decides.
class ReductionSink {
 public:
  virtual ~ReductionSink() = default;
  /// Copies the gradient of `t` into the open bucket, by.open_bucket(). `completes`: it is the last gradient of its
  /// bucket in this micro-step.
  virtual void pack(const Reduction& by, int t, bool completes) = 0;
  /// Sums gradients over the ranks, in place or, if `packed`, in the open bucket. This rank's optimizer part then goes
  /// to its place until the update. Computing may continue meanwhile, as far as the policy's reductions_under_way
  /// allows.
  virtual void reduce(const Reduction& by, std::span<const int> tensors, bool packed) = 0;
  /// All gradients of this micro-step have been sent.
  virtual void end_micro_step() = 0;
};

/// Decides when gradients are summed over the data ranks, bucket by bucket. A bucket is sent when it is complete.
/// Gradients that are reduced in place may be completed in any order. Packed gradients are copied one behind the other,
/// and the first gradient of the next bucket sends the previous one.
class Reduction {
 public:
  /// All references must outlive this object.
  Reduction(const Setting& setting, std::int64_t micro_steps, ReductionSink& sink);
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  /// Returns whether gradients are sent in this micro-step.
  bool reduces_now() const { return setting_.policy.shards_gradients || micro_step_ + 1 == micro_steps_; }
  /// Returns whether copies of what is sharded (Knobs::copies) sum their gradients in this micro-step.
  bool sums_copies_now() const {
    const bool is_last = micro_step_ + 1 == micro_steps_;
    return setting_.knobs.copies > 1 && (setting_.policy.sums_copies_every_time || is_last);
  }
  /// Returns whether reduced gradients are added to those of earlier micro-steps.
  bool adds() const { return setting_.policy.shards_gradients && micro_step_ > 0; }
  /// Call before the gradient is written. Returns true if there is nothing to add it to.
  bool begin(int t);
  /// Call when the gradient is complete in this micro-step.
  void done(int t);
  void end_micro_step();

  /// Returns which of the policy's packed buckets is being filled, or sent, now.
  std::size_t open_bucket() const { return turn_ % setting_.policy.packed_buckets; }
  /// Returns the size of each packed bucket: the knob's size, or less if there are fewer gradients, plus the padding of
  /// the packed tensors.
  std::int64_t packed_bucket_elems() const;
  /// Returns how many packed buckets a micro-step sends.
  std::size_t packed_buckets_sent() const;

 private:
  void pack(int t);
  void send_open();
  bool completes(std::size_t bucket);
  std::size_t bucket_of(int t) const { return bucket_of_[static_cast<std::size_t>(t)]; }
  std::span<const int> members(std::size_t bucket) const {
    const std::size_t begin = bucket == 0 ? 0 : ends_[bucket - 1];
    return std::span(setting_.tensors.ready_order()).subspan(begin, ends_[bucket] - begin);
  }

  const Setting& setting_;
  ReductionSink& sink_;
  std::int64_t micro_steps_;
  std::int64_t micro_step_ = 0;
  std::vector<std::size_t> ends_;       ///< for each bucket: its end in ready order
  std::vector<std::size_t> bucket_of_;  ///< for each tensor
  std::vector<std::size_t> missing_;    ///< for each bucket: gradients that are not complete yet in this micro-step
  std::vector<char> written_;           ///< for each tensor: whether there is something to add to
  std::vector<int> open_;               ///< tensors in the bucket that is being filled
  std::size_t turn_ = 0;                ///< packed buckets sent
};

/// Receives the operations at the end of a step.
class UpdateSink {
 public:
  virtual ~UpdateSink() = default;
  /// Computes the norm of all gradients, from which clipping and loss scaling follow. Called only if the policy has
  /// control.
  virtual void control() = 0;
  /// Applies the optimizer to this rank's part of the tensors.
  virtual void update(std::span<const int> bucket) = 0;
  /// Converts updated masters to the parameters' type and copies them to the parameters, which live at `to`.
  virtual void deliver(Place to, std::span<const int> mastered) = 0;
  /// Gathers parameters that every rank holds whole, after each rank has updated a part of them.
  virtual void gather(std::span<const int> whole) = 0;
};

/// Walks the end of a step: clipping and loss scaling, the update bucket by bucket, and the return of the updated
/// parameters to the memory in which they are used.
void walk_update(const Setting& setting, UpdateSink& sink);

}  // namespace krigtune::schedule
