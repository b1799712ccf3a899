#pragma once
#include "krigtune/runner/runner.h"
#include "krigtune/tuner/memory_filter.h"

namespace krigtune {

/// What becomes of a configuration: out of memory, foreseen, without a run where the plan knows it (a baseline: nothing
/// else is asked that cannot fit); else what the runner says.
inline Outcome run_trial(const MemoryFilter& filter, Runner& runner, const Configuration& configuration,
                         const std::filesystem::path& trial_directory, const std::optional<Rival>& rival = {}) {
  const std::optional<MemoryVerdict> memory = filter.planned(configuration);
  if (memory && memory->verdict == Verdict::kTooLarge) return OutOfMemory{memory->predicted, true};
  return runner.run(configuration, trial_directory, rival);
}

}  // namespace krigtune
