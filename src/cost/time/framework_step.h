#pragma once
#include <variant>

#include "cost/framework.h"
#include "schedule/zero_policy.h"
#include "space/configuration.h"

namespace krigtune {

/// What a configuration means to the workload's framework.
struct FrameworkStep {
  Knobs knobs;
  ZeroPolicy policy;
  double reduced_bytes = 0.0;  ///< of an element of the gradients that travel
};
/// `workload`: in its framework's dialect.
std::variant<FrameworkStep, NotModelled> framework_step_of(const Workload& workload, const ClusterSpec& cluster,
                                                           const Configuration& configuration);

}  // namespace krigtune
