#pragma once
#include "krigtune/runner/runner.h"
#include "krigtune/tuner/memory_filter.h"
#include "krigtune/tuner/tuner.h"

namespace krigtune {

/// What becomes of a proposal: out of memory, foreseen, without a run where the plan knows it, of the user's guesses
/// also where it only expects it (strategies ask nothing that cannot fit, as far as the trials before say); else what
/// the runner says. The baseline of a program other than ours is run whatever is planned: the user trains with it.
inline Outcome run_trial(const MemoryFilter& filter, Runner& runner, const Proposal& proposal,
                         const std::filesystem::path& trial_directory, const std::optional<Rival>& rival = {}) {
  const bool is_foreseen = filter.is_exact() || proposal.strategy == kTryStrategy;
  const std::optional<MemoryVerdict> memory = is_foreseen ? filter.planned(proposal.configuration) : std::nullopt;
  if (memory && memory->verdict == Verdict::kTooLarge) return OutOfMemory{memory->predicted, true};
  return runner.run(proposal.configuration, trial_directory, rival);
}

}  // namespace krigtune
