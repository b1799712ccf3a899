#pragma once
#include <filesystem>

#include "run/loop.h"

namespace krigtune {

/// Proposes `count` trials without running them, and records them as pending in the directory's journal (made, with
/// session.json, when it is new). Safe beside other processes that ask, tell or tune there. Fewer than `count`, or
/// none: nothing is left to ask. The budget is not asked: who asks by hand decides how often.
/// Throws UserError as run_session does.
std::vector<Trial> ask_by_hand(const Session& session, const Candidates& candidates,
                               const std::filesystem::path& directory, const LoopOptions& options, const Clock& clock,
                               int count);

/// Closes a pending trial, wall time from when it was asked, and returns it. Throws UserError when there is no such
/// trial, it is closed already (with its status), or it belongs to a tune that is running.
Trial tell_by_hand(const Session& session, const std::filesystem::path& directory, int trial, const Outcome& outcome,
                   const Clock& clock);

}  // namespace krigtune
