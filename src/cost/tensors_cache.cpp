#include "cost/tensors_cache.h"

namespace krigtune::cost {

const schedule::StageTensors& TensorsCache::of(const schedule::Knobs& knobs, const schedule::StageParts& parts) {
  const Key key{knobs.tensor_ranks, knobs.expert_ranks, knobs.whole_experts, knobs.sequence_parallel,
                knobs.data_ranks,   parts.layers,       parts.embedding,     parts.head,
                parts.others[0],    parts.others[1],    parts.others[2]};
  const std::lock_guard lock(mutex_);
  auto& known = tensors_[key];
  if (!known) {
    const std::int64_t granule = schedule::granule_elems(knobs.data_ranks, schedule::compute_type(workload_.precision));
    known = std::make_unique<const schedule::StageTensors>(schedule::unit_tensors(workload_, knobs), parts, granule);
  }
  return *known;
}

}  // namespace krigtune::cost
