#pragma once
#include <filesystem>
#include <string>

#include "core/clock.h"
#include "core/json.h"
#include "jobs/command/command.h"

namespace krigtune::jobs {

/// How long a command's Python may take to build the model: importing torch and transformers takes 2 to 10 s, and more
/// for the first time on a network file system.
inline constexpr double kProbeTimeoutS = 30.0;

/// A command whose Python is asked.
struct ProbedCommand {
  const Command& command;           ///< must outlive it
  std::filesystem::path directory;  ///< base of the command's relative paths; absolute
  Variables before = {};            ///< variables that the user sets before the command
};

/// Lets the transformers of the command's Python build the model of a workload, if that names a config.json, and gives
/// the workload the parameters that are counted there: "others" in "model" has what krigtune's own reading lacks or has
/// too many (built_model.h). No weights are read, and nothing is fetched.
///
/// Returns a line about what was counted. If nothing could be, the workload stays as it is, and the line says why; ""
/// if there was nobody to ask: no config.json, no Python that the command is known to run in, or one without
/// transformers and torch.
std::string count_parameters(const ProbedCommand& job, const Clock& clock, Json& workload);

}  // namespace krigtune::jobs
