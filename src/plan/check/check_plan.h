#pragma once
#include <string>
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::plan {

/// The errors of a plan, one line each, with the check, the operation and the buffer. Empty: the plan is correct.
using PlanFindings = std::vector<std::string>;

/// Checks that the plan can be executed at all: each operation has the right number of operands, operands lie inside
/// their buffers and buffers inside their arenas, values that outlive the step are in persistent buffers, and
/// operations wait for earlier ones only (so no stream waits forever). The time is linear in the plan's size, so every
/// build can afford the check.
PlanFindings check_structure(const StepPlan& plan);

/// The result of one check of a plan.
struct PlanCheckResult {
  const char* name;         ///< the prefix of its findings
  const char* proves;       ///< in words, what is true of a plan if the check finds nothing
  bool was_made = false;    ///< false: an earlier check found something
  PlanFindings findings{};  ///< at most ten, because one mistake shows in many places

  bool passed() const { return was_made && findings.empty(); }
};

/// Checks everything that must be true of a training step, from the plan's public data alone. Each check relies on
/// those before it, so the checks after the first one with findings are not made.
///   structure    as above
///   operands     access, size and place are as each kind requires
///   order        accesses to the same bytes are ordered if one of them writes; windows are respected
///   collectives  one type, whole shards, the same order in every communicator; bytes sent, by operation and in sum
///   memory       arena bounds, and the persistent terms of the stage (Rajbhandari et al. 2020, section 5)
///   data flow    executes two steps with symbols instead of numbers: whatever is read was written and is not stale,
///                every gradient that an update reads is the derivative of the forward pass, summed exactly once over
///                all micro-steps and ranks, every parameter is updated once and is everywhere afterwards, and every
///                result is used
/// This takes milliseconds for small models and few ranks, and about a second for 48 layers, 8 ranks and 8 micro-steps:
/// the cost grows with operations times ranks.
std::vector<PlanCheckResult> run_plan_checks(const StepPlan& plan);

/// Returns the findings of all checks, in order. If there are none the plan is correct, because a check is skipped only
/// after another one with findings.
PlanFindings findings_of(const std::vector<PlanCheckResult>& results);

/// Returns the findings of run_plan_checks.
PlanFindings check_plan(const StepPlan& plan);

}  // namespace krigtune::plan
