#include "krigtune/schedule/update.h"

#include <vector>

namespace krigtune::schedule {
namespace {

// Those of the tensors whose parameters are whole on every rank, or the others; in `some` where they are not all alike.
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
  // Where updates are gathered bucket by bucket, those are the gathering's buckets.
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
