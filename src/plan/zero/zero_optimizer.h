#pragma once
#include <vector>

#include "zero/zero_state.h"

namespace krigtune {

/// The end of the step: clipping and loss scaling, the update bucket by bucket, and the updated parameters on their way
/// to where they are computed with.
class OptimizerStep {
 public:
  OptimizerStep(PlanBuilder& builder, const ZeroState& state, std::vector<Bucket> buckets);
  void add();

 private:
  void control();
  void add_norms(const Operand& sum, Stream stream);
  BufferId scalar(Place place);
  void update(const Bucket& bucket);
  void deliver(const Bucket& bucket);
  void deliver_to(Place to, std::vector<Operand> pairs);
  void gather(const Bucket& bucket);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const ZeroSetting& setting_;
  const ZeroPolicy& policy_;
  std::vector<Bucket> buckets_;
  BufferId control_ = -1;  ///< where the optimizer reads it
};

}  // namespace krigtune
