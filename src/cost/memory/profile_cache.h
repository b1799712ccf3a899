#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "memory/memory_profile.h"

namespace krigtune {

/// Memory profiles of one workload, and the tensors of its stages, each made once. Thread-safe.
class ProfileCache {
 public:
  explicit ProfileCache(Workload workload) : workload_(std::move(workload)) {}
  std::shared_ptr<const MemoryProfile> of(const Knobs& knobs);
  std::shared_ptr<const schedule::StageTensors> tensors_of(const Knobs& knobs, const schedule::StageParts& parts);

 private:
  using Key = std::tuple<std::int64_t, bool, Checkpointing>;
  Workload workload_;
  std::mutex mutex_;  // of what is below
  std::map<Key, std::shared_ptr<const MemoryProfile>> profiles_;
  using TensorsKey = std::array<std::int64_t, 5>;  ///< tensor and data ranks, layers, embedding, head
  std::map<TensorsKey, std::shared_ptr<const schedule::StageTensors>> tensors_;
};

}  // namespace krigtune
