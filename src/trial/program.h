#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/block.h"

namespace krigtune::trial {

// Shared by the runners of users' programs.

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Makes Python write each line immediately, unless the user has decided otherwise: lines are signs of life and
/// measurements.
void unbuffer_python(Environment& environment);

/// Returns the PATH of a program with the environment `added`.
std::string search_path(const Environment& added);

/// Throws EnvironmentError if the program does not exist: a path, relative to `working_directory`, or a name on the
/// PATH that results from `environment` (added to ours).
void refuse_missing_program(const std::string& name, const std::filesystem::path& working_directory,
                            const Environment& environment);

/// Throws UserError if an interpreter or a launcher on this machine (python, bash, torchrun, deepspeed, accelerate)
/// would run a script that does not exist, seen from `working_directory`. Words with placeholders are not checked.
void refuse_missing_script(const std::vector<std::string>& argv, const std::filesystem::path& working_directory);

/// Reads "oom_kill 3" from the text of /proc/vmstat (Linux 4.13 on).
std::optional<std::int64_t> oom_kills_in(const std::string& vmstat);
/// oom_kills_in of this machine now.
std::optional<std::int64_t> oom_kills_now();

// Keys of a session's block that say how a program is run. They throw UserError with the JSON pointer.

/// "argv": at least a program; `example` is shown in the error.
Codec<std::vector<std::string>> command_words(const std::string& example);
/// Seconds after which something is ended.
Codec<double> time_limit();
/// Seconds from SIGTERM to SIGKILL.
Codec<double> grace();

/// "cwd", relative to `base_dir`; absolute.
std::filesystem::path read_working_directory(JsonObject& block, const std::filesystem::path& base_dir);
/// "env".
Environment read_environment(JsonObject& block);
Json environment_json(const Environment& environment);
/// Throws UserError for a zero byte, because the operating system ends a text there.
void refuse_zero_byte(const JsonObject& block, const std::string& key, const std::string& text);

/// Adds "cwd" and "env" of any such settings.
template <class Spec>
void add_surroundings(Block<Spec>& block, const std::filesystem::path& base_dir) {
  block.custom(
      "cwd", schema::text(), "working directory, relative to the session (default: the session's directory)",
      [base_dir](JsonObject& object, Spec& spec) { spec.working_directory = read_working_directory(object, base_dir); },
      [](const Spec& spec) { return Json(spec.working_directory.string()); });
  block.custom(
      "env", schema::map({{"type", {"string", "number"}}}), "environment variables, added to krigtune's own",
      [](JsonObject& object, Spec& spec) { spec.environment = read_environment(object); },
      [](const Spec& spec) { return environment_json(spec.environment); });
}

}  // namespace krigtune::trial
