#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/command/command.h"

// The Python that a command runs in. It is found by the words of the command, and nothing is started.
namespace krigtune::jobs {

/// Returns the interpreter (with its options) from a script's first lines: "#!/venv/bin/python", "#!/usr/bin/env
/// python3", or the form that pip writes for a path that is too long for a first line. Empty if it is not Python.
std::vector<std::string> interpreter_in(std::string_view script);

/// Returns the interpreter of the command's innermost launcher, as found from `directory`; without a launcher, that of
/// the program that the command begins with, if `command.script` says that it is one ("axolotl train x.yml"). Empty if
/// unknown, for example in a container or behind a wrapper other than `env`. `before`: variables that the user sets
/// before the command.
std::vector<std::string> interpreter_of(const Command& command, const std::filesystem::path& directory,
                                        const Variables& before = {});

/// Returns the path of that interpreter; empty if it is unknown, or if there is no such program.
std::filesystem::path python_of(const Command& command, const std::filesystem::path& directory,
                                const Variables& before = {});

}  // namespace krigtune::jobs
