#pragma once
#include <vector>

#include "machine/finding.h"
#include "machine/machine_view.h"

namespace krigtune::machine {

/// One check for something that can slow down jobs on this machine: an entry of environment_checks().
struct Check {
  const char* name;
  std::vector<Slowness> explains;  ///< the kinds of slowness that its warnings can explain
  /// Returns its findings: nothing, a line that all is well, or one per warning. The caller fills in name and
  /// `explains`.
  std::vector<Finding> (*look)(const MachineView& view);
};

/// Returns all checks, in the order of the report.
std::vector<Check> environment_checks();

/// Returns the finding of one of them: whether other programs keep the processor busy.
std::vector<Finding> look_at_load(const MachineView& view);

/// Returns the findings of all checks.
std::vector<Finding> examine_environment(const MachineView& view);

/// Returns the warnings among them that may explain one of these kinds of slowness.
std::vector<Finding> that_explain(const std::vector<Finding>& findings, const std::vector<Slowness>& kinds);

}  // namespace krigtune::machine
