#pragma once
#include <memory>

#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// Plans of one block, which do not depend on the machine, the framework, or the number of layers. Models of the same
/// job under other assumptions share them. Thread-safe.
class BlockPlans {
 public:
  BlockPlans();
  ~BlockPlans();
  /// The result is valid as long as the object exists.
  const plan::StepPlan& of(const workload::Workload& workload, const schedule::Knobs& knobs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::cost
