#pragma once
#include <atomic>
#include <memory>

#include "krigtune/cli/command_line.h"
#include "krigtune/tuner/session.h"

namespace krigtune {

/// The session's runner. Throws EnvironmentError when krigtune-bench is wanted and missing, UserError when trials are
/// run by hand. `stop`: once true, the running trial is ended. Session, console and `stop` must outlive it.
std::unique_ptr<Runner> make_session_runner(const Session& session, const Console& console,
                                            const std::atomic<bool>* stop);

}  // namespace krigtune
