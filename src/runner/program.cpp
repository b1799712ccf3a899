#include "program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "command_result.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string search_path(const Environment& added) {
  const auto path = std::find_if(added.rbegin(), added.rend(), [](const auto& pair) { return pair.first == "PATH"; });
  if (path != added.rend()) return path->second;
  const char* ours = std::getenv("PATH");
  return ours == nullptr ? "/bin:/usr/bin" : ours;  // what execvp takes then
}

}  // namespace

std::filesystem::path find_program(const std::string& name, const std::filesystem::path& directory,
                                   const Environment& environment) {
  if (name.find('/') != std::string::npos) return is_program(directory / name) ? directory / name : "";
  const std::string path = search_path(environment);
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    std::filesystem::path candidate = directory / path.substr(begin, end - begin) / name;
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return {};
}

void refuse_missing_program(const std::string& name, const std::filesystem::path& working_directory,
                            const Environment& environment) {
  if (!find_program(name, working_directory, environment).empty()) return;
  const bool path = name.find('/') != std::string::npos;
  throw EnvironmentError(
      path ? fmt::format("the program '{}' is not there, seen from '{}'", name, working_directory.string())
           : fmt::format("the program '{}' is not on PATH", name),
      path ? "mend 'argv' or 'cwd' of the runner, or make it executable" : "install it, or write its path in 'argv'");
}

std::optional<std::int64_t> oom_kills_now() {
  constexpr std::size_t kAll = 1 << 16;
  std::ifstream in("/proc/vmstat");
  std::string text(kAll, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return oom_kills_in(text);
}

void refuse_zero_byte(const JsonObject& block, const std::string& key, const std::string& text) {
  if (text.find('\0') != std::string::npos) block.fail(key, "holds a zero byte", "remove it");
}

double read_seconds(JsonObject& block, const char* key, double fallback, bool zero_too) {
  const double value = block.number(key, fallback);
  constexpr double kMost = 1e9;  // thirty years
  if (!(zero_too ? value >= 0.0 : value > 0.0) || value > kMost) {
    block.fail(key, fmt::format("{} is no time limit", number_text(value)),
               zero_too ? "give 0 or more seconds" : "give seconds above 0");
  }
  return value;
}

std::filesystem::path read_working_directory(JsonObject& block, const std::filesystem::path& base_dir) {
  const std::string directory = block.text("cwd", "");
  refuse_zero_byte(block, "cwd", directory);
  auto path = std::filesystem::absolute(directory.empty() ? base_dir : base_dir / directory).lexically_normal();
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) && block.has("cwd")) {
    block.fail("cwd", fmt::format("'{}' is no directory", path.string()),
               "name one that exists; a relative one is relative to the session file");
  }
  return path;
}

Environment read_environment(JsonObject& block) {
  Environment environment;
  if (block.find("env") == nullptr) return environment;
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
    environment.emplace_back(name, text);
  }
  return environment;
}

Json environment_json(const Environment& environment) {
  Json json = Json::object();
  for (const auto& [name, value] : environment) json[name] = value;
  return json;
}

}  // namespace krigtune
