#pragma once
#include <atomic>
#include <filesystem>
#include <memory>

#include "krigtune/cli/command_line.h"
#include "krigtune/tuner/session.h"

namespace krigtune {

/// krigtune-bench beside the running program, else on PATH. Empty: there is none.
std::filesystem::path find_bench(const Console& console);

/// The program of that name on PATH. Empty: there is none.
std::filesystem::path find_on_path(const std::string& name);

/// The session's runner. Throws EnvironmentError when krigtune-bench is wanted and missing, UserError when trials are
/// run by hand. `stop`: once true, the running trial is ended. Session, console and `stop` must outlive it.
std::unique_ptr<Runner> make_session_runner(const Session& session, const Console& console,
                                            const std::atomic<bool>* stop);

}  // namespace krigtune
