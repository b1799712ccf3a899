#pragma once
#include "krigtune/runner/runner.h"
#include "krigtune/tuner/strategy.h"

// Private to this layer.
namespace krigtune {

/// What the trial, which is about to run, has to beat: the best measured so far in its own run. Empty for those whose
/// number is wanted in any case (the baseline, the user's guesses, what was measured before), and while nothing is
/// measured in it.
std::optional<Rival> rival_of(const Session& session, const Candidates& candidates, const History& history,
                              const Trial& trial);

}  // namespace krigtune
