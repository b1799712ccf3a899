#pragma once
#include <variant>

#include "cost/framework.h"
#include "schedule/zero_policy.h"
#include "space/configuration.h"

namespace krigtune::cost {

/// A configuration as the workload's framework interprets it.
struct FrameworkStep {
  schedule::Knobs knobs;
  schedule::ZeroPolicy policy;
  double reduced_bytes = 0.0;  ///< bytes of one element of the gradients that are sent
};
/// `workload` must be in its framework's dialect.
std::variant<FrameworkStep, schedule::NotModelled> framework_step_of(const workload::Workload& workload,
                                                                     const workload::ClusterSpec& cluster,
                                                                     const space::Configuration& configuration);

}  // namespace krigtune::cost
