#include "trial/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"

namespace krigtune::trial {
void unbuffer_python(Environment& environment) {
  const auto is_it = [](const auto& pair) { return pair.first == "PYTHONUNBUFFERED"; };
  if (std::none_of(environment.begin(), environment.end(), is_it)) environment.emplace_back("PYTHONUNBUFFERED", "1");
}

std::string search_path(const Environment& added) {
  const auto path = std::find_if(added.rbegin(), added.rend(), [](const auto& pair) { return pair.first == "PATH"; });
  if (path != added.rend()) return path->second;
  return program_search_path();
}

void refuse_missing_program(const std::string& name, const std::filesystem::path& working_directory,
                            const Environment& environment) {
  if (!find_program(name, working_directory, search_path(environment)).empty()) return;
  const bool path = name.find('/') != std::string::npos;
  throw EnvironmentError(
      path ? fmt::format("the program '{}' is not there, seen from '{}'", name, working_directory.string())
           : fmt::format("the program '{}' is not on PATH", name),
      path ? "fix 'argv' or 'cwd' of the runner, or make it executable" : "install it, or write its path in 'argv'");
}

namespace {

bool runs_scripts(const std::string& program) {
  constexpr std::array<std::string_view, 5> kPrograms = {"bash", "sh", "torchrun", "deepspeed", "accelerate"};
  const std::string name = std::filesystem::path(program).filename().string();
  const bool is_python = name.rfind("python", 0) == 0 && name.find_first_not_of("0123456789.", 6) == std::string::npos;
  return is_python || is_one_of(name, kPrograms);
}

bool is_script_word(const std::string& word) {
  const std::string ending = std::filesystem::path(word).extension().string();
  return (ending == ".py" || ending == ".sh") && word.find('-') != 0 &&
         word.find_first_of(" \t\n{}") == std::string::npos;
}

}  // namespace

void refuse_missing_script(const std::vector<std::string>& argv, const std::filesystem::path& working_directory) {
  if (argv.empty() || !runs_scripts(argv.front())) return;
  constexpr std::array<std::string_view, 3> kNoScript = {"-m", "--module",
                                                         "-c"};  // a module, or a program in the words
  const auto script = std::find_if(argv.begin() + 1, argv.end(), is_script_word);
  if (std::any_of(argv.begin() + 1, script, [&](const auto& word) { return is_one_of(word, kNoScript); })) return;
  std::error_code error;
  if (script == argv.end() || std::filesystem::exists(working_directory / *script, error)) return;
  throw UserError(fmt::format("the script '{}' is not there, seen from '{}'", *script, working_directory.string()),
                  "fix the command, or start krigtune where the command works");
}

std::optional<std::int64_t> oom_kills_in(const std::string& vmstat) {
  std::istringstream words(vmstat);
  std::string name;
  std::int64_t count = 0;
  while (words >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
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
  if (text.find('\0') != std::string::npos) block.fail(key, "contains a zero byte", "remove it");
}

namespace {

constexpr double kLongestLimitS = 1e9;  // thirty years

}  // namespace

Codec<double> time_limit() { return number(above_up_to(0, kLongestLimitS)); }
Codec<double> grace() { return number(from_to(0, kLongestLimitS)); }

Codec<std::vector<std::string>> command_words(const std::string& example) {
  Codec<std::vector<std::string>> codec = texts();
  codec.schema = schema::not_empty(codec.schema);
  codec.read = [example](JsonObject& object, const std::string& key) {
    std::vector<std::string> words = object.texts(key);
    if (words.empty() || words.front().empty()) object.fail(key, "names no program", "write " + example);
    for (std::size_t i = 0; i < words.size(); ++i) refuse_zero_byte(object, fmt::format("{}/{}", key, i), words[i]);
    return words;
  };
  return codec;
}

std::filesystem::path read_working_directory(JsonObject& block, const std::filesystem::path& base_dir) {
  const std::string directory = block.text("cwd", "");
  refuse_zero_byte(block, "cwd", directory);
  auto path = std::filesystem::absolute(directory.empty() ? base_dir : base_dir / directory).lexically_normal();
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) && block.has("cwd")) {
    block.fail("cwd", fmt::format("'{}' is not a directory", path.string()),
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
      object.fail(name, "is not the name of an environment variable", "write {\"NAME\": \"value\"}");
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

}  // namespace krigtune::trial
