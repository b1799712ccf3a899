#pragma once
#include "krigtune/cost/framework.h"
#include "krigtune/plan/zero_policy.h"
#include "krigtune/space/configuration.h"

namespace krigtune {

/// What a configuration means to the workload's framework.
struct FrameworkStep {
  Knobs knobs;
  ZeroPolicy policy;
  double reduced_bytes = 0.0;  ///< of an element of the gradients that travel
};
/// The workload in the dialect that comes closest to its framework's schedule.
Workload in_framework_dialect(const Workload& workload);
/// `workload`: in that dialect. Throws UserError as read_knobs does.
FrameworkStep read_framework_step(const Workload& workload, const ClusterSpec& cluster,
                                  const Configuration& configuration);

}  // namespace krigtune
