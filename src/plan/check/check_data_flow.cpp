// Two steps: the first begins with the initial values, the second with what the first has left behind. So what a step
// needs of an earlier one and does not get, shows, and so does what it should not take over.
#include "check/checks.h"
#include "check/symbolic_run.h"

namespace krigtune {

void check_data_flow(const StepPlan& plan, PlanFindings& lines) {
  Findings findings(plan, "data flow", lines);
  SymbolicRun run(plan, findings);
  run.step();
  run.step();
  run.check_uses();
}

}  // namespace krigtune
