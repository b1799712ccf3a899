#pragma once
#include <string>
#include <vector>

#include "krigtune/plan/step_plan.h"
#include "krigtune/space/configuration.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// The schedule of one optimizer step and its memory, as data, in the workload's dialect. A pure function.
///
/// Understood of the configuration: planned_parameters(); what it leaves out has its default (space/well_known.h).
/// Throws UserError for what it does not model (pipeline parallelism, NVMe, unknown knobs), for sizes that the ranks do
/// not divide and for sizes that make no model.
StepPlan build_plan(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration);

/// Names of the parameters that change a plan, pipeline_parallel (of which a plan takes 1 only) among them.
const std::vector<std::string>& planned_parameters();
/// Throws UserError as build_plan does, for a fraction of its cost.
void check_knobs(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration);

}  // namespace krigtune
