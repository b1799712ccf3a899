// The rules are those of plan/zero_gradients.cpp, step by step; the test over random configurations compares the two.
#include "memory/reduction_memory.h"

#include <algorithm>
#include <utility>

namespace krigtune {

ReductionMemory::ReductionMemory(const ModelTensors& model, const Workload& workload, const Knobs& knobs,
                                 std::int64_t micro_steps, const ReductionHabits& habits)
    : model_(model),
      knobs_(knobs),
      micro_steps_(micro_steps),
      type_bytes_(size_bytes(compute_type(workload.precision))),
      transient_(knobs.zero_stage >= 2),
      packs_(workload.dialect == Dialect::kDeepSpeed),
      grows_(habits.gradients_grow && knobs.zero_stage < 2),
      whole_buckets_(habits.whole_buckets) {
  if (idle()) return;
  const bool overlap = knobs.overlap_comm && knobs.zero_stage > 0;
  keeps_buckets_ = packs_ && knobs.zero_stage == 3;
  packed_buckets_ = overlap && !keeps_buckets_ ? 2 : 1;
  width_ = !overlap ? 0 : keeps_buckets_ ? 2 : 1;
  packed_.resize(packed_buckets_);
  written_.assign(model.tensors.size(), false);
  make_buckets();
  if (packs_) bucket_bytes_ = bucket_elems() * type_bytes_;
  packed_sends_ = static_cast<std::size_t>(
      std::count_if(buckets_.begin(), buckets_.end(), [&](const Bucket& bucket) { return !goes_alone(bucket.first); }));
  if (keeps_buckets_ && packed_sends_ > 0) bytes_ = bucket_bytes_;
}

void ReductionMemory::make_buckets() {
  std::int64_t elems = 0;
  bucket_of_.resize(model_.tensors.size());
  for (const int t : model_.ready_order) {
    if (buckets_.empty() || elems + model_[t].elems > knobs_.reduce_bucket_elems) {
      buckets_.push_back({.first = t});
      elems = 0;
    }
    ++buckets_.back().tensors;
    ++buckets_.back().missing;
    buckets_.back().padded_elems += model_[t].padded_elems;
    elems += model_[t].elems;
    bucket_of_[static_cast<std::size_t>(t)] = buckets_.size() - 1;
  }
}

std::int64_t ReductionMemory::bucket_elems() const {
  std::int64_t fullest = 0;
  for (const Bucket& bucket : buckets_) {
    if (!goes_alone(bucket.first)) fullest = std::max(fullest, bucket.padded_elems);
  }
  const std::int64_t knob = knobs_.reduce_bucket_elems;
  return std::max(fullest, whole_buckets_ ? knob : std::min(model_.elems, knob));
}

void ReductionMemory::first_gradient(int tensor) {
  if (!(transient_ || grows_) || written_[static_cast<std::size_t>(tensor)]) return;
  written_[static_cast<std::size_t>(tensor)] = true;
  const std::int64_t bytes = model_[tensor].padded_elems * type_bytes_;
  bytes_ += bytes;
  if (grows_) grown_bytes_ += bytes;
}

std::int64_t ReductionMemory::gradient_done(int tensor) {
  const bool behind_backward = packs_ && knobs_.zero_stage == 0;
  if (idle() || !reduces_now() || behind_backward) return 0;
  if (packs_) return pack(tensor);
  count(tensor);
  return 0;
}

void ReductionMemory::count(int tensor) {
  Bucket& bucket = buckets_[bucket_of_[static_cast<std::size_t>(tensor)]];
  if (--bucket.missing > 0) return;
  bucket.missing = bucket.tensors;
  enter(transient_ ? bucket.padded_elems * type_bytes_ : 0);
}

std::int64_t ReductionMemory::pack(int tensor) {
  const auto bucket = [&](int t) { return bucket_of_[static_cast<std::size_t>(t)]; };
  if (!open_.empty() && bucket(open_.front()) != bucket(tensor)) send();
  if (goes_alone(tensor)) {
    enter(gradient_bytes(tensor));
    return 0;
  }
  open_.push_back(tensor);
  if (keeps_buckets_) return 0;
  const std::size_t turn = turn_ % packed_buckets_;
  for (std::size_t i = 0; i < packed_buckets_; ++i) {
    if (packed_[i].here || !(whole_buckets_ || i == turn)) continue;
    packed_[i] = {true, entered_.size()};
    bytes_ += bucket_bytes_;
  }
  const std::int64_t while_copied = bytes_;
  bytes_ -= gradient_bytes(tensor);
  return while_copied;
}

void ReductionMemory::send() {
  std::int64_t held_bytes = 0;
  for (const int t : open_) held_bytes += keeps_buckets_ ? gradient_bytes(t) : 0;
  Packed& packed = packed_[turn_ % packed_buckets_];
  packed.entry = entered_.size();
  // Not filled again in this micro-step: whoever waits for this reduction frees the bucket.
  const bool is_last = ++sends_ + packed_buckets_ > packed_sends_;
  if (is_last && std::exchange(packed.here, false)) held_bytes += bucket_bytes_;
  enter(held_bytes);
  open_.clear();
  ++turn_;
}

void ReductionMemory::enter(std::int64_t held_bytes) {
  entered_.push_back(held_bytes);
  if (entered_.size() > width_) release(entered_.size() - width_);
}

void ReductionMemory::release(std::size_t count) {
  while (released_ < count) {
    just_released_bytes_ += entered_[released_];
    bytes_ -= entered_[released_++];
  }
}

std::int64_t ReductionMemory::end_micro_step() {
  std::int64_t most_bytes = 0;
  if (packs_ && knobs_.zero_stage == 0 && reduces_now()) {
    for (const int t : model_.ready_order) most_bytes = std::max(most_bytes, pack(t));
  }
  if (!open_.empty()) send();
  if (!keeps_buckets_) release_packed();
  if (transient_) written_.assign(written_.size(), false);
  sends_ = 0;
  ++micro_step_;
  return most_bytes;
}

// Whoever waits for its last reduction frees it.
void ReductionMemory::release_packed() {
  for (Packed& packed : packed_) {
    if (!packed.here) continue;
    const bool is_sent = packed.entry < entered_.size();
    if (!is_sent || packed.entry < released_) {
      bytes_ -= bucket_bytes_;
    } else {
      entered_[packed.entry] += bucket_bytes_;
    }
    packed.here = false;
  }
}

}  // namespace krigtune
