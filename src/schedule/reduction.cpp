#include "schedule/reduction.h"

#include <algorithm>
#include <vector>
namespace krigtune::schedule {

Reduction::Reduction(const Setting& setting, std::int64_t micro_steps, ReductionSink& sink)
    : setting_(setting),
      sink_(sink),
      micro_steps_(micro_steps),
      ends_(bucket_ends(setting.tensors, setting.knobs.reduce_bucket_elems)) {
  const auto tensors = static_cast<std::size_t>(setting.tensors.count());
  bucket_of_.resize(tensors);
  missing_.reserve(ends_.size());
  written_.assign(tensors, 0);
  for (std::size_t b = 0; b < ends_.size(); ++b) {
    for (const int t : members(b)) bucket_of_[static_cast<std::size_t>(t)] = b;
    missing_.push_back(members(b).size());
  }
}

bool Reduction::begin(int t) {
  char& written = written_[static_cast<std::size_t>(t)];
  const bool is_first = written == 0;
  written = 1;
  return is_first;
}

void Reduction::done(int t) {
  if (!reduces_now() || setting_.policy.reduces_behind_backward) return;
  if (setting_.policy.packs) return pack(t);
  const std::size_t bucket = bucket_of(t);
  if (completes(bucket)) sink_.reduce(*this, members(bucket), false);
}

void Reduction::end_micro_step() {
  if (reduces_now() && setting_.policy.reduces_behind_backward) {
    for (const int t : setting_.tensors.ready_order()) pack(t);
  }
  if (!open_.empty()) send_open();
  sink_.end_micro_step();
  if (setting_.policy.shards_gradients) std::fill(written_.begin(), written_.end(), char{0});
  ++micro_step_;
}

void Reduction::pack(int t) {
  if (!open_.empty() && bucket_of(open_.front()) != bucket_of(t)) send_open();
  const bool is_last = completes(bucket_of(t));
  if (setting_.goes_alone(t)) return sink_.reduce(*this, std::span(&t, 1), false);
  sink_.pack(*this, t, is_last);
  open_.push_back(t);
}

void Reduction::send_open() {
  sink_.reduce(*this, open_, true);
  open_.clear();
  ++turn_;
}

bool Reduction::completes(std::size_t bucket) {
  if (--missing_[bucket] > 0) return false;
  missing_[bucket] = members(bucket).size();
  return true;
}

std::int64_t Reduction::packed_bucket_elems() const {
  std::int64_t fullest = 0;
  for (std::size_t b = 0; b < ends_.size(); ++b) {
    if (setting_.goes_alone(members(b).front())) continue;
    std::int64_t padded = 0;
    for (const int t : members(b)) padded += setting_.tensors.padded(t);
    fullest = std::max(fullest, padded);
  }
  const std::int64_t knob = setting_.knobs.reduce_bucket_elems;
  return std::max(fullest,
                  setting_.policy.whole_packed_buckets ? knob : std::min(setting_.tensors.trained_elems(), knob));
}

std::size_t Reduction::packed_buckets_sent() const {
  std::size_t sent = 0;
  for (std::size_t b = 0; b < ends_.size(); ++b) sent += setting_.goes_alone(members(b).front()) ? 0 : 1;
  return sent;
}

namespace {

// Returns the tensors whose parameters are whole on every rank, or the others; uses `some` for storage if the tensors
// are mixed.
std::span<const int> those(const Setting& setting, std::span<const int> tensors, bool sharded, std::vector<int>& some) {
  some.clear();
  if (!setting.policy.shards_parameters) return sharded ? std::span<const int>() : tensors;
  for (const int t : tensors) {
    if (setting.is_sharded(t) == sharded) some.push_back(t);
  }
  return some;
}

void deliver(const Setting& setting, std::span<const int> bucket, UpdateSink& sink) {
  const ZeroPolicy& policy = setting.policy;
  std::vector<int> some;
  const auto to = [&](Place home, std::span<const int> tensors) {
    if (!tensors.empty() && Setting::needs_master(policy, home)) sink.deliver(home, tensors);
  };
  if (policy.shard_place == Place::kDevice) return to(Place::kDevice, bucket);
  to(Place::kDevice, those(setting, bucket, false, some));
  to(policy.shard_place, those(setting, bucket, true, some));
}

void gather(const Setting& setting, std::span<const int> tensors, UpdateSink& sink) {
  std::vector<int> some;
  const std::span<const int> whole = those(setting, tensors, false, some);
  if (setting.policy.shards_optimizer && !whole.empty()) sink.gather(whole);
}

}  // namespace

void walk_update(const Setting& setting, UpdateSink& sink) {
  const ZeroPolicy& policy = setting.policy;
  if (policy.controls) sink.control();
  // If updates are gathered bucket by bucket, the update uses the gathering's buckets.
  const bool gathers_buckets = policy.shards_optimizer && !policy.gathers_updates_at_once;
  const std::int64_t most_elems =
      gathers_buckets ? setting.knobs.allgather_bucket_elems : setting.knobs.reduce_bucket_elems;
  const std::span<const int> order = setting.tensors.ready_order();
  std::size_t begin = 0;
  for (const std::size_t end : bucket_ends(setting.tensors, most_elems)) {
    const std::span<const int> bucket = order.subspan(begin, end - begin);
    begin = end;
    sink.update(bucket);
    deliver(setting, bucket, sink);
    if (gathers_buckets) gather(setting, bucket, sink);
  }
  if (!gathers_buckets) gather(setting, order, sink);
}

}  // namespace krigtune::schedule
