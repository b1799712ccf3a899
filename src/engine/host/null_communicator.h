#pragma once
#include "host/communicator.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// Communicates nothing, in no time: what a step would take if communication were free. What ranks compute with means
/// nothing afterwards. `clock` must outlive it.
class NullCommunicator final : public Communicator {
 public:
  explicit NullCommunicator(const Clock& clock) : clock_(clock) {}

  double all_reduce(const Collective& /*collective*/) override { return clock_.now_s(); }
  double all_reduce_max(const Collective& /*collective*/) override { return clock_.now_s(); }
  double reduce_scatter(const Collective& /*collective*/) override { return clock_.now_s(); }
  double all_gather(const Collective& /*collective*/) override { return clock_.now_s(); }

 private:
  const Clock& clock_;
};

}  // namespace krigtune
