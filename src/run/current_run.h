#pragma once
#include "run/loop.h"

// Whether a session that goes on can trust the clock of its earlier trials.
namespace krigtune::run {

/// Of the last trial that was begun; 0 where there is none.
int latest_run(const search::History& history);

/// What trials belong to that are run now: still the latest run of the history, or another one where its machine may
/// run at another speed by now, see current_run.cpp.
CurrentRun current_run(const session::Session& session, const search::History& history, const RunOptions& options,
                       const Clock& clock);

/// The leader, to be measured again. Empty: it was asked in this run, whatever came of it, or nothing was measured yet,
/// or this is the first run.
std::optional<journal::Proposal> leader_again(const session::Session& session, const search::Candidates& candidates,
                                              const search::History& history, const CurrentRun& run);

}  // namespace krigtune::run
