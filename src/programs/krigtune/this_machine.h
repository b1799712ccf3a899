#pragma once
#include <filesystem>

#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// `"gpu": "local"` becomes numbers, so that step times can be predicted. Where trials will run on GPUs: those of the
/// table, and the GPU's memory. Else what a run directory recorded when it was begun; for a new one, or none, what was
/// measured on this machine's cores, once for all sessions. Where that cannot be it warns, and no times are predicted.
void know_this_machine(const Context& context, session::Session& session,
                       const std::filesystem::path& run_directory = {});

}  // namespace krigtune::cli
