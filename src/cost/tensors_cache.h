#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "schedule/tensors.h"

namespace krigtune::cost {

/// The tensors of a workload's pipeline stages, created once for each way to split them. Thread-safe.
class TensorsCache {
 public:
  explicit TensorsCache(workload::Workload workload) : workload_(std::move(workload)) {}
  /// The result is valid as long as the cache exists.
  const schedule::StageTensors& of(const schedule::Knobs& knobs, const schedule::StageParts& parts);

 private:
  /// Tensor ranks, expert ranks, sequence parallel, data ranks, layers, embedding, head, layers of the kinds before the
  /// last one.
  using Key = std::array<std::int64_t, 8 + workload::kMostKinds - 1>;
  workload::Workload workload_;
  std::mutex mutex_;  // guards the members below
  std::map<Key, std::unique_ptr<const schedule::StageTensors>> tensors_;
};

}  // namespace krigtune::cost
