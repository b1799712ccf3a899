// The session's block of the runner "command", and that of "none", which has no keys.
#include <fmt/format.h>

#include <algorithm>

#include "krigtune/core/text.h"
#include "krigtune/runner/placeholders.h"
#include "oom_text.h"
#include "program.h"
#include "registry.h"

namespace krigtune {
namespace {

// libstdc++ compiles by recursion: a pattern of this length is no danger to the stack.
constexpr std::size_t kLongestPattern = 500;

std::string indexed(const std::string& key, std::size_t index) { return fmt::format("{}/{}", key, index); }

void read_command_argv(JsonObject& block, CommandSpec& spec) {
  block.require("argv");
  spec.argv = block.texts("argv");
  if (spec.argv.empty() || spec.argv.front().empty()) {
    block.fail("argv", "names no program", R"(write ["python", "run.py", "{config}", "{result}"])");
  }
  for (std::size_t i = 0; i < spec.argv.size(); ++i) {
    refuse_zero_byte(block, indexed("argv", i), spec.argv[i]);
    const std::vector<std::string> unknown = unknown_placeholders(spec.argv[i]);
    if (unknown.empty()) continue;
    block.fail(indexed("argv", i), fmt::format("'{{{}}}' is no placeholder", unknown.front()),
               suggestion(unknown.front(), known_placeholders()) + " A brace of its own is written '{{'");
  }
}

void read_exit_codes(JsonObject& block, CommandSpec& spec) {
  const Json* codes = block.find("oom_exit_codes");
  if (codes == nullptr) return;
  constexpr int kLargest = 255;
  const auto is_code = [](const Json& code) {
    return code.is_number_integer() && code.get<double>() >= 1 && code.get<double>() <= kLargest;
  };
  if (!codes->is_array() || !std::all_of(codes->begin(), codes->end(), is_code)) {
    block.fail("oom_exit_codes", "a list of exit codes was expected", "write [3], each from 1 to 255");
  }
  for (const Json& code : *codes) spec.oom_exit_codes.push_back(code.get<int>());
}

void read_patterns(JsonObject& block, CommandSpec& spec) {
  spec.oom_patterns = block.texts("oom_patterns");
  for (std::size_t i = 0; i < spec.oom_patterns.size(); ++i) {
    const std::string& pattern = spec.oom_patterns[i];
    const std::string key = indexed("oom_patterns", i);
    if (pattern.size() > kLongestPattern) block.fail(key, "is too long", "give 500 characters at most");
    if (pattern.empty()) block.fail(key, "is empty and would match every line", "remove it");
    try {
      compile_pattern(pattern);
    } catch (const std::regex_error&) {
      block.fail(key, fmt::format("'{}' is no regular expression", pattern),
                 "write one as in JavaScript, without back-references");
    }
  }
}

void read_command(JsonObject& block, const std::filesystem::path& base_dir, RunnerSpec& spec) {
  CommandSpec& command = spec.command;
  read_command_argv(block, command);
  command.working_directory = read_working_directory(block, base_dir);
  command.environment = read_environment(block);
  command.timeout_s = read_seconds(block, "timeout_s", command.timeout_s, false);
  command.grace_s = read_seconds(block, "grace_s", command.grace_s, true);
  if (block.has("no_progress_s")) command.no_progress_s = read_seconds(block, "no_progress_s", 0.0, false);
  block.find("no_progress_s");
  read_exit_codes(block, command);
  read_patterns(block, command);
}

void write_command(const RunnerSpec& spec, Json& block) {
  const CommandSpec& command = spec.command;
  block["argv"] = command.argv;
  block["cwd"] = command.working_directory.string();
  block["env"] = environment_json(command.environment);
  block["timeout_s"] = json_number(command.timeout_s);
  block["grace_s"] = json_number(command.grace_s);
  block["no_progress_s"] = command.no_progress_s ? json_number(*command.no_progress_s) : Json(nullptr);
  block["oom_exit_codes"] = command.oom_exit_codes;
  block["oom_patterns"] = command.oom_patterns;
}

void read_none(JsonObject& /*block*/, const std::filesystem::path& /*base_dir*/, RunnerSpec& /*spec*/) {}
void write_none(const RunnerSpec& /*spec*/, Json& /*block*/) {}

}  // namespace

RunnerEntry command_runner_entry() { return {RunnerKind::kCommand, "command", read_command, write_command}; }

RunnerEntry none_runner_entry() { return {RunnerKind::kNone, "none", read_none, write_none}; }

}  // namespace krigtune
