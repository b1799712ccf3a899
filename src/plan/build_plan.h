#pragma once
#include "plan/step_plan.h"
#include "schedule/knobs.h"
#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::plan {

/// Builds the schedule of one optimizer step and its memory, as data, in the workload's dialect. A pure function.
///
/// It reads the parameters planned_parameters() (schedule/knobs.h); missing ones have their default
/// (space/well_known.h). Throws UserError for settings that it does not model (pipeline parallelism, NVMe, unknown
/// knobs), for sizes that the ranks do not divide, and for sizes that are not a valid model.
StepPlan build_plan(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                    const space::Configuration& configuration);
/// The same for knobs that are known: those of read_knobs for some configuration, or these with other values of what a
/// plan supports.
StepPlan build_plan(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                    const schedule::Knobs& knobs);

}  // namespace krigtune::plan
