#pragma once
#include "plan/step_plan.h"
#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::plan {

/// The schedule of one optimizer step and its memory, as data, in the workload's dialect. A pure function.
///
/// Understood of the configuration: planned_parameters() (schedule/knobs.h); what it leaves out has its default
/// (space/well_known.h). Throws UserError for what it does not model (pipeline parallelism, NVMe, unknown knobs), for
/// sizes that the ranks do not divide and for sizes that make no model.
StepPlan build_plan(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                    const space::Configuration& configuration);

}  // namespace krigtune::plan
