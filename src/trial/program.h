#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/block.h"

namespace krigtune::trial {

// What runners of the user's programs share.

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Python writes each line at once, unless the user has said what it should do: lines are signs of life and
/// measurements.
void unbuffer_python(Environment& environment);

/// PATH as `added` leaves it to a program.
std::string search_path(const Environment& added);

/// Throws EnvironmentError where there is no such program: a path, relative to `working_directory`, or a name on the
/// PATH that `environment` (added to ours) leaves it.
void refuse_missing_program(const std::string& name, const std::filesystem::path& working_directory,
                            const Environment& environment);

/// Throws UserError where an interpreter or a launcher on this machine (python, bash, torchrun, deepspeed, accelerate)
/// is to run a script that is not there, seen from `working_directory`. A word with placeholders is not judged.
void refuse_missing_script(const std::vector<std::string>& argv, const std::filesystem::path& working_directory);

/// "oom_kill 3" of /proc/vmstat (Linux 4.13 on).
std::optional<std::int64_t> oom_kills_in(const std::string& vmstat);
/// oom_kills_in of this machine now.
std::optional<std::int64_t> oom_kills_now();

// Keys of a session's block that say how a program is run. They throw UserError with the JSON pointer.

/// "argv": at least a program; `example` is what to write.
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
/// Text that the operating system takes: it ends at the first zero byte.
void refuse_zero_byte(const JsonObject& block, const std::string& key, const std::string& text);

/// "cwd" and "env" of any such settings.
template <class Spec>
void add_surroundings(Block<Spec>& block, const std::filesystem::path& base_dir) {
  block.custom(
      "cwd", schema::text(), "relative to the session (default: the session's directory)",
      [base_dir](JsonObject& object, Spec& spec) { spec.working_directory = read_working_directory(object, base_dir); },
      [](const Spec& spec) { return Json(spec.working_directory.string()); });
  block.custom(
      "env", schema::map({{"type", {"string", "number"}}}), "variables added to ours",
      [](JsonObject& object, Spec& spec) { spec.environment = read_environment(object); },
      [](const Spec& spec) { return environment_json(spec.environment); });
}

}  // namespace krigtune::trial
