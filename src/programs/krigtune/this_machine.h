#pragma once
#include <filesystem>

#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// Replaces `"gpu": "local"` by numbers, so that step times can be predicted. If trials will run on GPUs, the numbers
/// are those of the table and the GPU's memory. Otherwise they are those that the run directory recorded when it was
/// begun; for a new one, or none, they are measured on this machine's cores, once for all sessions. If that is
/// impossible, it prints a warning, and no times are predicted.
void know_this_machine(const Context& context, session::Session& session,
                       const std::filesystem::path& run_directory = {});

}  // namespace krigtune::cli
