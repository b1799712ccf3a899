#pragma once
#include <memory>

#include "cost/tensors_cache.h"
#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// What does not depend on the machine and the framework: plans of one block of each kind, whatever the number of
/// layers, and the tensors of pipeline stages. Models of the same job under other assumptions share them. Thread-safe.
class BlockPlans {
 public:
  BlockPlans();
  ~BlockPlans();
  /// The result is valid as long as the object exists.
  const plan::StepPlan& of(const workload::Workload& workload, const schedule::Knobs& knobs);
  /// Returns the tensors of the workload's model in its precision.
  std::shared_ptr<TensorsCache> tensors(const workload::Workload& workload);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::cost
