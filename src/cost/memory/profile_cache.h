#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "memory/memory_profile.h"

namespace krigtune {

/// Memory profiles of one workload, each made once. Thread-safe.
class ProfileCache {
 public:
  explicit ProfileCache(Workload workload) : workload_(std::move(workload)) {}
  std::shared_ptr<const MemoryProfile> of(const Knobs& knobs);

 private:
  using Key = std::tuple<std::int64_t, bool, Checkpointing>;
  Workload workload_;
  std::mutex mutex_;  // of what is below
  std::map<Key, std::shared_ptr<const MemoryProfile>> profiles_;
};

}  // namespace krigtune
