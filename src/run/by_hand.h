#pragma once
#include <filesystem>
#include <functional>

#include "run/loop.h"

namespace krigtune::run {

/// Proposes `count` trials without running them, and records them as pending in the directory's journal (made, with
/// session.json, when it is new). Safe beside other processes that ask, tell or tune there. Fewer than `count`, or
/// none: nothing is left to ask. The budget is not asked: who asks by hand decides how often.
/// `asked` is called with each trial as soon as it is in the journal: what it says is true if the process ends then.
/// Throws UserError as run_session does.
std::vector<journal::Trial> ask_by_hand(const session::Session& session, const search::Candidates& candidates,
                                        const std::filesystem::path& directory, const LoopOptions& options,
                                        const Clock& clock, int count,
                                        const std::function<void(const journal::Trial&)>& asked = {});

/// Closes a pending trial, wall time from when it was asked, and returns it. Throws UserError when there is no such
/// trial, it is closed already (with its status), or it belongs to a tune that is running.
journal::Trial tell_by_hand(const session::Session& session, const std::filesystem::path& directory, int trial,
                            const trial::Outcome& outcome, const Clock& clock);

}  // namespace krigtune::run
