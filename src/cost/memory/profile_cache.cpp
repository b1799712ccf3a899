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

}  // namespace krigtune
