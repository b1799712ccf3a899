#include "cost/tensors_cache.h"

#include "cost/knob_keys.h"

namespace krigtune::cost {

const schedule::StageTensors& TensorsCache::of(const schedule::Knobs& knobs, const schedule::StageParts& parts) {
  const schedule::Knobs own = of_tensors(knobs);
  const std::lock_guard lock(mutex_);
  auto& known = tensors_[{own, parts}];
  if (!known) {
    const std::int64_t granule = schedule::granule_elems(own.data_ranks, schedule::compute_type(workload_.precision));
    known = std::make_unique<const schedule::StageTensors>(schedule::unit_tensors(workload_, own), parts, granule);
  }
  return *known;
}

}  // namespace krigtune::cost
