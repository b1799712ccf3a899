#pragma once
#include <optional>

#include "search/candidates/candidates.h"
#include "search/trials/history.h"
#include "session/session.h"
#include "trial/runner.h"

namespace krigtune::run {

/// Returns what a trial that is about to run has to beat: the best value measured so far in its own run. Empty for
/// trials whose number is wanted in any case (the baseline, the user's guesses, repeated measurements), and while the
/// run has no measured value.
std::optional<trial::Rival> rival_of(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const journal::Trial& trial);

}  // namespace krigtune::run
