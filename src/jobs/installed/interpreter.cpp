#include "jobs/installed/interpreter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/files.h"
#include "core/text.h"
#include "trial/program.h"

namespace krigtune::jobs {
namespace {

std::vector<std::string> blank_separated(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t begin = line.find_first_not_of(" \t\r"); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(" \t\r", end);
  }
  return words;
}

bool is_python(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return name.rfind("python", 0) == 0 || name.rfind("pypy", 0) == 0;
}

// Line 2 of  #!/bin/sh
//            '''exec' "/a path with blanks/python" "$0" "$@"
std::vector<std::string> behind_exec(std::string_view line) {
  constexpr std::string_view kExec = "'''exec' ";
  if (line.rfind(kExec, 0) != 0) return {};
  line.remove_prefix(kExec.size());
  const bool is_quoted = !line.empty() && line.front() == '"';
  if (is_quoted) line.remove_prefix(1);
  std::string path(line.substr(0, line.find(is_quoted ? '"' : ' ')));
  return is_python(path) ? std::vector{std::move(path)} : std::vector<std::string>();
}

std::string head_of(const std::filesystem::path& file) {
  constexpr std::size_t kHead = 4096;
  return RegularFile(file).read(0, kHead);
}

// Programs that run the words behind them with other packages than those of this machine's PATH.
bool changes_packages(const std::string& word) {
  constexpr auto kPrograms =
      std::to_array<std::string_view>({"apptainer", "singularity", "docker", "podman", "enroot", "shifter", "conda",
                                       "mamba", "micromamba", "poetry", "pipenv", "uv", "pixi"});
  return word.starts_with("--container") || is_one_of(std::filesystem::path(word).filename().string(), kPrograms);
}

// Returns the word that is the interpreter, or a program that is written in Python.
std::optional<std::string> program_word(const Command& command) {
  const std::optional<Variables> environment = variables_before(command);
  if (!environment) return std::nullopt;
  const bool has_env = std::filesystem::path(command.argv.front()).filename() == "env";
  std::size_t program = environment->size() + (has_env ? 1 : 0);
  if (!command.stages.empty()) {
    program = command.stages.back().program;
  } else if (command.has_script || command.script != program + 1) {
    return std::nullopt;
  }
  const auto end = command.argv.begin() + static_cast<std::ptrdiff_t>(program);
  return std::any_of(command.argv.begin(), end, changes_packages) ? std::nullopt : std::optional(*end);
}

std::string path_of(const Command& command, Variables before) {
  for (const auto& variable : variables_before(command).value_or(Variables())) before.push_back(variable);
  return trial::search_path(before);
}

}  // namespace

std::vector<std::string> interpreter_in(std::string_view script) {
  if (script.rfind("#!", 0) != 0) return {};
  const std::size_t end = std::min(script.find('\n'), script.size());
  std::vector<std::string> words = blank_separated(script.substr(2, end - 2));
  if (words.empty()) return {};
  if (words.front() == "/bin/sh") {
    const std::string_view rest = script.substr(std::min(end + 1, script.size()));
    return behind_exec(rest.substr(0, rest.find('\n')));
  }
  const bool is_env = std::filesystem::path(words.front()).filename() == "env";
  if (is_env) words.erase(words.begin(), words.begin() + (words.size() > 1 && words[1] == "-S" ? 2 : 1));
  return !words.empty() && is_python(words.front()) ? words : std::vector<std::string>();
}

std::vector<std::string> interpreter_of(const Command& command, const std::filesystem::path& directory,
                                        const Variables& before) {
  const std::optional<std::string> word = program_word(command);
  if (!word) return {};
  if (is_python(*word)) return {*word};
  const std::filesystem::path program = find_program(*word, directory, path_of(command, before));
  return program.empty() ? std::vector<std::string>() : interpreter_in(head_of(program));
}

std::filesystem::path python_of(const Command& command, const std::filesystem::path& directory,
                                const Variables& before) {
  const std::vector<std::string> words = interpreter_of(command, directory, before);
  if (words.empty()) return {};
  return find_program(words.front(), directory, path_of(command, before)).lexically_normal();
}

}  // namespace krigtune::jobs
