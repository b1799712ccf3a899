// The session's block of the runner "command", and that of "none", which has no keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "krigtune/core/text.h"
#include "krigtune/runner/placeholders.h"
#include "oom_text.h"
#include "registry.h"

namespace krigtune {
namespace {

// libstdc++ compiles by recursion: a pattern of this length is no danger to the stack.
constexpr std::size_t kLongestPattern = 500;

std::string indexed(const std::string& key, std::size_t index) { return fmt::format("{}/{}", key, index); }

// Text that the operating system takes: it ends at the first zero byte.
void refuse_zero_byte(const JsonObject& block, const std::string& key, const std::string& text) {
  if (text.find('\0') != std::string::npos) block.fail(key, "holds a zero byte", "remove it");
}

void read_argv(JsonObject& block, CommandSpec& spec) {
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

double seconds(JsonObject& block, const char* key, double fallback, bool zero_too) {
  const double value = block.number(key, fallback);
  constexpr double kMost = 1e9;  // thirty years
  if (!(zero_too ? value >= 0.0 : value > 0.0) || value > kMost) {
    block.fail(key, fmt::format("{} is no time limit", number_text(value)),
               zero_too ? "give 0 or more seconds" : "give seconds above 0");
  }
  return value;
}

void read_environment(JsonObject& block, CommandSpec& spec) {
  if (block.find("env") == nullptr) return;
  const JsonObject object = block.object("env");
  for (const auto& [name, value] : object.value().items()) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      object.fail(name, "is no name of an environment variable", "write {\"NAME\": \"value\"}");
    }
    if (!value.is_string() && !value.is_number()) {
      object.fail(name, "a text or a number was expected", "write \"...\"");
    }
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    refuse_zero_byte(object, name, text);
    spec.environment.emplace_back(name, text);
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
  read_argv(block, command);
  const std::string directory = block.text("cwd", "");
  refuse_zero_byte(block, "cwd", directory);
  command.working_directory = std::filesystem::absolute(directory.empty() ? base_dir : base_dir / directory);
  command.working_directory = command.working_directory.lexically_normal();
  std::error_code error;
  if (!std::filesystem::is_directory(command.working_directory, error) && block.has("cwd")) {
    block.fail("cwd", fmt::format("'{}' is no directory", command.working_directory.string()),
               "name one that exists; a relative one is relative to the session file");
  }
  read_environment(block, command);
  command.timeout_s = seconds(block, "timeout_s", command.timeout_s, false);
  command.grace_s = seconds(block, "grace_s", command.grace_s, true);
  if (block.has("no_progress_s")) command.no_progress_s = seconds(block, "no_progress_s", 0.0, false);
  block.find("no_progress_s");
  read_exit_codes(block, command);
  read_patterns(block, command);
}

void write_command(const RunnerSpec& spec, Json& block) {
  const CommandSpec& command = spec.command;
  block["argv"] = command.argv;
  block["cwd"] = command.working_directory.string();
  block["env"] = Json::object();
  for (const auto& [name, value] : command.environment) block["env"][name] = value;
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
