#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "krigtune/core/clock.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_versions.h"

// Which DeepSpeed a job would import, without importing it: that takes seconds, and touches the devices.
namespace krigtune {

/// The interpreter (with its own options) that a script's first lines name: "#!/venv/bin/python",
/// "#!/usr/bin/env python3", or what pip writes for a path that is too long for a first line. Empty: no Python.
std::vector<std::string> interpreter_in(std::string_view script);

/// The interpreter that the command's innermost launcher runs under, as it would be found from `directory`. Empty: not
/// known, as in a container or behind a wrapper other than `env`.
std::vector<std::string> interpreter_of(const DsCommand& command, const std::filesystem::path& directory);

/// The version that this interpreter's packages say. Empty: no interpreter, no DeepSpeed, or no answer within 10 s.
std::optional<DsVersion> installed_version(const DsCommand& command, const std::filesystem::path& directory,
                                           const Clock& clock);

}  // namespace krigtune
