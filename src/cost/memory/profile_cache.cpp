#include "memory/profile_cache.h"

namespace krigtune {

std::shared_ptr<const MemoryProfile> ProfileCache::of(const Knobs& knobs) {
  const Key key{knobs.tensor_ranks, knobs.sequence_parallel, knobs.checkpointing};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = profiles_.find(key); found != profiles_.end()) return found->second;
  }
  auto made = std::make_shared<const MemoryProfile>(profile_memory(workload_, knobs));
  const std::lock_guard lock(mutex_);
  return profiles_.emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const schedule::StageTensors> ProfileCache::tensors_of(const Knobs& knobs,
                                                                       const schedule::StageParts& parts) {
  const TensorsKey key{knobs.tensor_ranks, knobs.data_ranks, parts.layers, parts.embedding, parts.head};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = tensors_.find(key); found != tensors_.end()) return found->second;
  }
  const std::int64_t granule = schedule::granule_elems(knobs.data_ranks, compute_type(workload_.precision));
  auto made = std::make_shared<const schedule::StageTensors>(of(knobs)->model, parts, granule);
  const std::lock_guard lock(mutex_);
  return tensors_.emplace(key, std::move(made)).first->second;
}

}  // namespace krigtune
