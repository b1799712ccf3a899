#pragma once
#include "krigtune/runner/runner.h"
#include "krigtune/tuner/memory_filter.h"
#include "krigtune/tuner/tuner.h"

namespace krigtune {

/// What becomes of a proposal: out of memory, foreseen, without a run where the plan knows it (the user's own:
/// strategies ask nothing that cannot fit, as far as the trials before say); else what the runner says.
inline Outcome run_trial(const MemoryFilter& filter, Runner& runner, const Proposal& proposal,
                         const std::filesystem::path& trial_directory, const std::optional<Rival>& rival = {}) {
  const bool is_the_users = proposal.strategy == kBaselineStrategy || proposal.strategy == kTryStrategy;
  const bool is_foreseen = is_the_users || filter.is_exact();
  const std::optional<MemoryVerdict> memory = is_foreseen ? filter.planned(proposal.configuration) : std::nullopt;
  if (memory && memory->verdict == Verdict::kTooLarge) return OutOfMemory{memory->predicted, true};
  return runner.run(proposal.configuration, trial_directory, rival);
}

}  // namespace krigtune
