#include "profile_cache.h"

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

std::shared_ptr<const ModelTensors> ProfileCache::tensors_of(const Knobs& knobs, const StageShape& stage) {
  const TensorsKey key{knobs.tensor_ranks, knobs.data_ranks, stage.layers, stage.has_embedding, stage.has_head};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = tensors_.find(key); found != tensors_.end()) return found->second;
  }
  auto made = std::make_shared<const ModelTensors>(*of(knobs), stage, workload_.model.tied_embeddings, knobs.data_ranks,
                                                   size_bytes(compute_type(workload_.precision)));
  const std::lock_guard lock(mutex_);
  return tensors_.emplace(key, std::move(made)).first->second;
}

}  // namespace krigtune
