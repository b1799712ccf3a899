#pragma once
#include <vector>

#include "machine/finding.h"
#include "machine/machine_view.h"

namespace krigtune::machine {

/// One check of what can make jobs on this machine slow: an entry of environment_checks().
struct Check {
  const char* name;
  std::vector<Slowness> explains;  ///< what its warnings can explain
  /// What it finds: nothing, a line that all is well, or a warning each. The name and what it explains are filled in.
  std::vector<Finding> (*look)(const MachineView& view);
};

/// All of them, in the order in which they are told.
std::vector<Check> environment_checks();

/// What all of them find.
std::vector<Finding> examine_environment(const MachineView& view);

/// Of these the warnings that may explain one of these kinds of slowness.
std::vector<Finding> that_explain(const std::vector<Finding>& findings, const std::vector<Slowness>& kinds);

}  // namespace krigtune::machine
