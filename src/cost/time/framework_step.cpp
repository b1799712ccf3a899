#include "cost/time/framework_step.h"

#include <limits>
#include <utility>

#include "space/well_known.h"

namespace krigtune::cost {
namespace {

void set_units(const space::Configuration& configuration, schedule::Knobs& knobs) {
  if (!configuration.has(space::kPersistence)) knobs.persistence_elems = 0;
  if (!configuration.has(space::kPrefetch)) knobs.prefetch_elems = 0;
  if (!configuration.has(space::kMaxLive)) {
    knobs.max_live_elems = std::numeric_limits<std::int64_t>::max() / 64;
  }
}

}  // namespace

std::variant<FrameworkStep, schedule::NotModelled> framework_step_of(const workload::Workload& workload,
                                                                     const workload::ClusterSpec& cluster,
                                                                     const space::Configuration& configuration) {
  std::variant<schedule::Knobs, schedule::NotModelled> known =
      schedule::knobs_of(workload, cluster, with_usual_settings(workload, configuration));
  if (schedule::NotModelled* problem = std::get_if<schedule::NotModelled>(&known)) return std::move(*problem);
  const FrameworkTraits& traits = traits_of(workload.framework);
  FrameworkStep step;
  step.knobs = std::get<schedule::Knobs>(known);
  schedule::Knobs& knobs = step.knobs;
  step.reduced_bytes = static_cast<double>(traits.sends_kept_gradients
                                               ? workload::size_bytes(workload::kept_gradients(workload))
                                               : schedule::size_bytes(schedule::compute_type(workload.precision)));
  if (!traits.has_zero_knobs && !configuration.has(space::kOverlap)) {
    knobs.overlap_comm = traits.overlaps;
  }
  if (traits.bucket_bytes > 0.0) {
    const auto elems = static_cast<std::int64_t>(traits.bucket_bytes / step.reduced_bytes);
    if (!configuration.has(space::kReduceBucket)) knobs.reduce_bucket_elems = elems;
    if (!configuration.has(space::kAllgatherBucket)) knobs.allgather_bucket_elems = elems;
  }
  if (knobs.zero_stage >= traits.units_from_stage) set_units(configuration, knobs);
  step.policy = schedule::make_policy(workload, knobs);
  if (traits.always_takes_norm) step.policy.controls = true;
  step.policy.sums_copies_every_time = traits.sums_copies_every_time;
  return step;
}

}  // namespace krigtune::cost
