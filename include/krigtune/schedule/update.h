#pragma once
#include <span>

#include "krigtune/schedule/setting.h"

namespace krigtune::schedule {

/// What happens at the end of a step.
class UpdateSink {
 public:
  virtual ~UpdateSink() = default;
  /// The norm of all gradients, from which clipping and loss scaling follow. Only where the policy controls.
  virtual void control() = 0;
  /// The optimizer's step on what this rank updates of the tensors.
  virtual void update(std::span<const int> bucket) = 0;
  /// Updated masters go to the parameters, which live at `to`, in their type.
  virtual void deliver(Place to, std::span<const int> mastered) = 0;
  /// Of parameters that every rank holds whole, each rank has updated a part: they are gathered.
  virtual void gather(std::span<const int> whole) = 0;
};

/// The end of a step: clipping and loss scaling, the update bucket by bucket, and the updated parameters on their way
/// to where they are computed with.
void walk_update(const Setting& setting, UpdateSink& sink);

}  // namespace krigtune::schedule
