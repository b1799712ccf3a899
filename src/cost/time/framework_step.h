#pragma once
#include <variant>

#include "cost/framework.h"
#include "schedule/zero_policy.h"
#include "space/configuration.h"

namespace krigtune::cost {

/// What a configuration means to the workload's framework.
struct FrameworkStep {
  schedule::Knobs knobs;
  schedule::ZeroPolicy policy;
  double reduced_bytes = 0.0;  ///< of an element of the gradients that travel
};
/// `workload`: in its framework's dialect.
std::variant<FrameworkStep, schedule::NotModelled> framework_step_of(const workload::Workload& workload,
                                                                     const workload::ClusterSpec& cluster,
                                                                     const space::Configuration& configuration);

}  // namespace krigtune::cost
