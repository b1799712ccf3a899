#pragma once
#include <string>
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::plan {

/// What is wrong with a plan, a line each, naming the check, the operation and the buffer. Empty: the plan is right.
using PlanFindings = std::vector<std::string>;

/// Whether the plan can be executed at all: as many operands as each kind takes, inside their buffers, buffers inside
/// their arenas, what outlives the step in buffers that are kept, waits for earlier operations only (so no stream waits
/// for ever). Linear in the plan's size: cheap enough for every build.
PlanFindings check_structure(const StepPlan& plan);

/// What one of the checks of a plan said.
struct PlanCheckResult {
  const char* name;         ///< findings begin with it
  const char* proves;       ///< in words, what is true of a plan in which it finds nothing
  bool was_made = false;    ///< false: an earlier check found something
  PlanFindings findings{};  ///< at most ten: one mistake shows in many places

  bool passed() const { return was_made && findings.empty(); }
};

/// All that must hold of one training step, from the plan's public data alone. Each check trusts those before it: where
/// one finds something, the next are not made.
///  structure    as above
///  operands     access, size and place as each kind takes them
///  order        accesses to the same bytes are ordered where one of them writes; windows are kept
///  collectives  one type, whole shards, the order of every communicator the same; bytes sent, by operation and in sum
///  memory       arena bounds, and the persistent terms of the stage (Rajbhandari et al. 2020, section 5)
///  data flow    two steps executed with symbols for numbers: whatever is read was written and is not stale, every
///               gradient that an update reads is the derivative of the forward pass, summed over all micro-steps and
///               ranks once, every parameter is updated once and is everywhere afterwards, every result is used
/// Takes milliseconds for small models and few ranks, about a second for 48 layers, 8 ranks and 8 micro-steps: its cost
/// grows with operations times ranks.
std::vector<PlanCheckResult> run_plan_checks(const StepPlan& plan);

/// The findings of all checks, in their order. Empty: the plan is right, for a check that was not made comes after one
/// that found something.
PlanFindings findings_of(const std::vector<PlanCheckResult>& results);

/// The findings of run_plan_checks.
PlanFindings check_plan(const StepPlan& plan);

}  // namespace krigtune::plan
