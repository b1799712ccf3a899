#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/setting.h"

namespace krigtune::schedule {

class Reduction;

/// What becomes of complete gradients. `by`: the reduction that decides so.
class ReductionSink {
 public:
  virtual ~ReductionSink() = default;
  /// The gradient of `t` is copied into the open bucket, by.open_bucket(). `completes`: it is the last one of
  /// its bucket in this micro-step.
  virtual void pack(const Reduction& by, int t, bool completes) = 0;
  /// The gradients are summed over the ranks, where they are or, `packed`, in the open bucket; what this rank's
  /// optimizer needs of them goes to where it stays until the update. Computing may go on beside it, as far as the
  /// policy's reductions_under_way allows.
  virtual void reduce(const Reduction& by, std::span<const int> tensors, bool packed) = 0;
  /// Everything of this micro-step has been sent.
  virtual void end_micro_step() = 0;
};

/// Decides when gradients are summed over the data ranks, bucket by bucket. A bucket travels once it is complete:
/// reduced where they are, its gradients may be completed in any order; packed, they are copied one behind the other,
/// and the first of the next bucket sends the one before.
class Reduction {
 public:
  /// All references must outlive it.
  Reduction(const Setting& setting, std::int64_t micro_steps, ReductionSink& sink);
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  /// Gradients travel in this micro-step.
  bool reduces_now() const { return setting_.policy.shards_gradients || micro_step_ + 1 == micro_steps_; }
  /// What travels is added to what is kept from earlier micro-steps.
  bool adds() const { return setting_.policy.shards_gradients && micro_step_ > 0; }
  /// The gradient is about to be written. True where nothing is there to be added to.
  bool begin(int t);
  /// The gradient is complete in this micro-step.
  void done(int t);
  void end_micro_step();

  /// Which of the policy's packed buckets is filled, or sent, now.
  std::size_t open_bucket() const { return turn_ % setting_.policy.packed_buckets; }
  /// Of each packed bucket: as large as the knob says, where there are as many gradients; larger by the padding of what
  /// is packed.
  std::int64_t packed_bucket_elems() const;
  /// How many packed buckets a micro-step sends.
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
  std::vector<std::size_t> ends_;       ///< by bucket, in ready order
  std::vector<std::size_t> bucket_of_;  ///< by tensor
  std::vector<std::size_t> missing_;    ///< by bucket: gradients that are not complete in this micro-step
  std::vector<char> written_;           ///< by tensor: there is something to add to
  std::vector<int> open_;               ///< what is in the bucket that is being filled
  std::size_t turn_ = 0;                ///< packed buckets sent
};

/// What happens at the end of a step.
class UpdateSink {
 public:
  virtual ~UpdateSink() = default;
  /// The norm of all gradients, from which clipping and loss scaling follow. Only where the policy controls.
  virtual void control() = 0;
  /// The optimizer's step on what this rank updates of the tensors.
  virtual void update(std::span<const int> bucket) = 0;
  /// Updated masters go to the parameters, which live at `to`, in their type.
  virtual void deliver(Place to, std::span<const int> mastered) = 0;
  /// Of parameters that every rank holds whole, each rank has updated a part: they are gathered.
  virtual void gather(std::span<const int> whole) = 0;
};

/// The end of a step: clipping and loss scaling, the update bucket by bucket, and the updated parameters on their way
/// to where they are computed with.
void walk_update(const Setting& setting, UpdateSink& sink);

}  // namespace krigtune::schedule
