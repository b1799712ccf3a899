#pragma once
#include <filesystem>
#include <functional>

#include "run/loop.h"

namespace krigtune::run {

/// Proposes `count` trials without running them, and records them as pending in the directory's journal (created with
/// session.json if the directory is new). Other processes may ask, tell or tune there at the same time. Returns fewer
/// than `count`, or none, if nothing is left to propose. The budget does not apply, because whoever asks by hand
/// decides how often. `asked` is called with each trial as soon as it is in the journal, so its output stays true if
/// the process ends then. Throws UserError like run_session.
std::vector<journal::Trial> ask_by_hand(const session::Session& session, const search::Candidates& candidates,
                                        const std::filesystem::path& directory, const LoopOptions& options,
                                        const Clock& clock, int count,
                                        const std::function<void(const journal::Trial&)>& asked = {});

/// Closes a pending trial and returns it; its wall time counts from when it was asked. Throws UserError if there is no
/// such trial, if it is closed already (with its status), or if it belongs to a tune that is running.
journal::Trial tell_by_hand(const session::Session& session, const std::filesystem::path& directory, int trial,
                            const trial::Outcome& outcome, const Clock& clock);

}  // namespace krigtune::run
