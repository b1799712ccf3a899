#include "memory/zero_memory.h"

#include <algorithm>
#include <utility>

namespace krigtune {

// --- parameters

void GatheredMemory::gather(std::span<const schedule::GatheredItem* const> items) {
  for (const schedule::GatheredItem* item : items) {
    if (slots_.size() <= item->slot) slots_.resize(item->slot + 1);
    slots_[item->slot] = {.counted = true, .behind = sent_};
    bytes_ += item->elems * setting_.type_bytes();
  }
}

void GatheredMemory::let_go(const schedule::GatheredItem& item) { release(item); }

void GatheredMemory::release(const schedule::GatheredItem& item) {
  if (std::exchange(slots_[item.slot].counted, false)) bytes_ -= item.elems * setting_.type_bytes();
}

std::size_t GatheredMemory::reductions_over(std::span<const schedule::GatheredItem> current) const {
  if (setting_.policy.optimizer_place != Place::kHost || setting_.policy.shard_place != Place::kHost) return 0;
  std::size_t over = 0;
  for (const schedule::GatheredItem& item : current) over = std::max(over, slots_[item.slot].behind);
  return over;
}

void GatheredMemory::last_read(std::span<const schedule::GatheredItem> current, int tensor, bool is_last) {
  for (const schedule::GatheredItem& item : current) {
    const bool is_read = setting_.policy.fetches_tensors ? item.tensors.front() == tensor : is_last;
    if (is_read && !item.stays) release(item);
  }
}

// --- gradients

bool ReductionMemory::is_idle(const ZeroPolicy& policy) {
  return !policy.shards_gradients && !policy.packs && !policy.grows_gradients;
}

ReductionMemory::ReductionMemory(const schedule::Setting& setting)
    : setting_(setting), policy_(setting.policy), packed_(setting.policy.packed_buckets) {}

void ReductionMemory::start(const schedule::Reduction& by) {
  if (!policy_.packs) return;
  bucket_bytes_ = by.packed_bucket_elems() * setting_.type_bytes();
  packed_sends_ = by.packed_buckets_sent();
  if (policy_.keeps_packed_buckets && packed_sends_ > 0) bytes_ = bucket_bytes_;
}

void ReductionMemory::first_gradient(int t) {
  if (!policy_.shards_gradients && !policy_.grows_gradients) return;
  const std::int64_t bytes = setting_.tensors.padded(t) * setting_.type_bytes();
  bytes_ += bytes;
  if (!policy_.shards_gradients) grown_bytes_ += bytes;
}

void ReductionMemory::pack(const schedule::Reduction& by, int t, bool) {
  if (policy_.keeps_packed_buckets) return;
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    if (packed_[i].here || !(policy_.whole_packed_buckets || i == by.open_bucket())) continue;
    packed_[i] = {true, entered_.size()};
    bytes_ += bucket_bytes_;
  }
  most_while_copied_ = std::max(most_while_copied_, bytes_);
  bytes_ -= transient_bytes(t);
}

std::int64_t ReductionMemory::most_while_copied() { return std::exchange(most_while_copied_, 0); }

void ReductionMemory::reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) {
  if (packed) return send_packed(by, tensors);
  std::int64_t held_bytes = 0;
  for (const int t : tensors) held_bytes += transient_bytes(t);
  enter(held_bytes);
}

void ReductionMemory::send_packed(const schedule::Reduction& by, std::span<const int> tensors) {
  std::int64_t held_bytes = 0;
  for (const int t : tensors) held_bytes += policy_.keeps_packed_buckets ? transient_bytes(t) : 0;
  Packed& packed = packed_[by.open_bucket()];
  packed.entry = entered_.size();
  // Not filled again in this micro-step: whoever waits for this reduction frees the bucket.
  const bool is_last = ++sends_ + packed_.size() > packed_sends_;
  if (is_last && std::exchange(packed.here, false)) held_bytes += bucket_bytes_;
  enter(held_bytes);
}

void ReductionMemory::enter(std::int64_t held_bytes) {
  entered_.push_back(held_bytes);
  const std::size_t width = policy_.reductions_under_way;
  if (entered_.size() > width) release(entered_.size() - width);
}

void ReductionMemory::release(std::size_t count) {
  while (released_ < count) {
    just_released_bytes_ += entered_[released_];
    bytes_ -= entered_[released_++];
  }
}

void ReductionMemory::end_micro_step() {
  if (!policy_.keeps_packed_buckets) release_packed();
  sends_ = 0;
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
