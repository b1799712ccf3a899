#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "krigtune/core/json.h"

// What runners of the user's programs share. Private to this layer.
namespace krigtune {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The program of that name: a path, relative to `working_directory`, or a name on the PATH that `environment` (added
/// to ours) leaves it. Empty: there is none.
std::filesystem::path find_program(const std::string& name, const std::filesystem::path& working_directory,
                                   const Environment& environment);

/// Throws EnvironmentError where there is none.
void refuse_missing_program(const std::string& name, const std::filesystem::path& working_directory,
                            const Environment& environment);

/// oom_kills_in (command_result.h) of this machine now.
std::optional<std::int64_t> oom_kills_now();

// Keys of a session's block that say how a program is run. Each throws UserError with the JSON pointer.

/// "cwd", relative to the session's directory; absolute.
std::filesystem::path read_working_directory(JsonObject& block, const std::filesystem::path& base_dir);
/// "env".
Environment read_environment(JsonObject& block);
Json environment_json(const Environment& environment);
/// Seconds above 0, or 0 and more.
double read_seconds(JsonObject& block, const char* key, double fallback, bool zero_too);
/// Text that the operating system takes: it ends at the first zero byte.
void refuse_zero_byte(const JsonObject& block, const std::string& key, const std::string& text);

}  // namespace krigtune
