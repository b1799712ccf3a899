#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "schedule/tensors.h"

namespace krigtune::cost {

/// The tensors of a workload's pipeline stages, created once for each way to split them. Thread-safe.
class TensorsCache {
 public:
  explicit TensorsCache(workload::Workload workload) : workload_(std::move(workload)) {}
  /// The result is valid as long as the cache exists.
  const schedule::StageTensors& of(const schedule::Knobs& knobs, const schedule::StageParts& parts);

 private:
  workload::Workload workload_;
  std::mutex mutex_;  // guards the members below
  std::map<std::pair<schedule::Knobs, schedule::StageParts>, std::unique_ptr<const schedule::StageTensors>>
      tensors_;  ///< by of_tensors
};

}  // namespace krigtune::cost
