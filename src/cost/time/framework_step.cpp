#include "cost/time/framework_step.h"

#include <limits>
#include <utility>

#include "space/well_known.h"

namespace krigtune {
namespace {

void set_units(const Configuration& configuration, Knobs& knobs) {
  if (!configuration.has(kPersistence)) knobs.persistence_elems = 0;
  if (!configuration.has(kPrefetch)) knobs.prefetch_elems = 0;
  if (!configuration.has(kMaxLive)) {
    knobs.max_live_elems = std::numeric_limits<std::int64_t>::max() / 64;
  }
}

}  // namespace

std::variant<FrameworkStep, NotModelled> framework_step_of(const Workload& workload, const ClusterSpec& cluster,
                                                           const Configuration& configuration) {
  std::variant<Knobs, NotModelled> known = knobs_of(workload, cluster, with_usual_settings(workload, configuration));
  if (NotModelled* problem = std::get_if<NotModelled>(&known)) return std::move(*problem);
  const FrameworkTraits& traits = traits_of(workload.framework);
  FrameworkStep step;
  step.knobs = std::get<Knobs>(known);
  Knobs& knobs = step.knobs;
  const auto type_bytes = static_cast<double>(size_bytes(compute_type(workload.precision)));
  step.reduced_bytes = traits.reduced_bytes > 0.0 ? traits.reduced_bytes : type_bytes;
  if (!traits.has_zero_knobs && !configuration.has(kOverlap)) {
    knobs.overlap_comm = traits.overlaps;
  }
  if (traits.bucket_bytes > 0.0) {
    const auto elems = static_cast<std::int64_t>(traits.bucket_bytes / step.reduced_bytes);
    if (!configuration.has(kReduceBucket)) knobs.reduce_bucket_elems = elems;
    if (!configuration.has(kAllgatherBucket)) knobs.allgather_bucket_elems = elems;
  }
  if (traits.whole_units) set_units(configuration, knobs);
  step.policy = make_policy(workload, knobs);
  if (traits.always_takes_norm) step.policy.controls = true;
  return step;
}

}  // namespace krigtune
