#pragma once
#include "run/loop.h"

// Decides whether a session that is continued can trust the clock of its earlier trials.
namespace krigtune::run {

/// Returns the largest run number of the trials; 0 if there are none.
int latest_run(const search::History& history);

/// Returns the run of trials that are proposed now: the latest run of the history, or a new one if the machine may have
/// another speed now (see current_run.cpp).
CurrentRun current_run(const session::Session& session, const search::History& history, const RunOptions& options,
                       const Clock& clock);

/// Returns the leader, to be measured again. Empty if it was already proposed in this run, whatever its result, if
/// nothing was measured yet, or if this is the first run.
std::optional<journal::Proposal> leader_again(const session::Session& session, const search::Candidates& candidates,
                                              const search::History& history, const CurrentRun& run);

}  // namespace krigtune::run
