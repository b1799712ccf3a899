#include "zero/zero_schedule.h"

#include <utility>

namespace krigtune {
namespace {

// Where updates are gathered bucket by bucket, those are the gathering's buckets.
std::vector<Bucket> update_buckets(const ZeroSetting& setting, const std::vector<int>& ready_order) {
  const bool gathers_buckets = setting.policy.shards_optimizer && !setting.policy.gathers_updates_at_once;
  return setting.make_buckets(
      ready_order, gathers_buckets ? setting.knobs.allgather_bucket_elems : setting.knobs.reduce_bucket_elems);
}

}  // namespace

ZeroSchedule::ZeroSchedule(PlanBuilder& builder, const ParameterTable& table, const Workload& workload,
                           const Knobs& knobs, std::vector<std::vector<int>> uses, const std::vector<int>& ready_order)
    : setting_{table, knobs, make_policy(workload, knobs)},
      state_(builder, setting_),
      parameters_(builder, state_, std::move(uses)),
      gradients_(builder, state_, ready_order),
      optimizer_(builder, state_, update_buckets(setting_, ready_order)) {}

Windows ZeroSchedule::windows() const {
  const auto limit = [](std::size_t width) {
    return width == ZeroPolicy::kNoLimit ? -1 : static_cast<std::int64_t>(width);
  };
  return {limit(setting_.policy.reductions_under_way), limit(setting_.policy.gathers_under_way),
          parameters_.most_gathered_elems()};
}

}  // namespace krigtune
