#pragma once
#include <iosfwd>

#include "plan/step_plan.h"
#include "programs/bench/options.h"

namespace krigtune::bench {

/// Checks the job's plan by plan::run_plan_checks. Prints what each check proved, or each finding on a line of its own;
/// with options.json a JSON document. Returns the exit code: 0, or 1 with findings.
int check(const TrainingJob& job, const plan::StepPlan& plan, const BenchOptions& options, std::ostream& out);

/// krigtune-bench --check: checks the plan of options.config. Runs nothing, and needs neither the memory nor the
/// devices of the job. Throws UserError.
int check_config(const BenchOptions& options, std::ostream& out);

}  // namespace krigtune::bench
