#pragma once
#include <cstdint>
#include <optional>

#include "search/candidates/candidates.h"
#include "search/trials/history.h"
#include "session/session.h"

// Measures the recommended configuration and what it is compared with again, so that the gain becomes certain.
namespace krigtune::run {

/// Returns the recommended configuration or that of the gain's reference, whichever was measured less often (the
/// reference, if they are equal), until each has `times` measurements in the history's latest run. So the two are
/// measured alternately, and what slows the machine down for a while affects both alike. Empty if nothing is left to
/// measure or no trial has succeeded. `seed`: of the recommendation. A pure function of the history: the same command
/// after an interruption measures only what is missing.
std::optional<journal::Proposal> next_repeat(const session::Session& session, const search::Candidates& candidates,
                                             const search::History& history, int times, std::uint64_t seed);

}  // namespace krigtune::run
