#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "jobs/session/vary.h"
#include "space/configuration.h"

namespace krigtune::jobs {

/// What a command finds around it.
struct CommandSurroundings {
  std::filesystem::path directory;  ///< that its paths are relative to; absolute
  std::function<std::optional<std::string>(const std::string& name)> variable;  ///< of the environment
};

/// The user's command with placeholders where its values were: keys of a session's runner `command`.
struct VariedCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  ///< variable, text with placeholders
  Json flags = Json::object();                           ///< parameter, value, words: of switches
  Json set = Json::object();                             ///< absolute path of a file, key, placeholder
  std::vector<Vary> varied;                              ///< their values as the command writes them ("True", "yes")
  space::Configuration own;                              ///< what the command itself says of them
  std::vector<std::string> absent;                       ///< names that it does not say: `own` has the first to try
  std::vector<std::string> remarks;                      ///< one line each
};

/// What braces in the words mean.
struct Braces {
  std::vector<std::string> names = {};  ///< parameters that {name} stands for, beside what trials fill in
  bool are_escaped = false;             ///< the words are a session's already
};

/// Each parameter's value is replaced where it is in the command, whose other words stay as they are:
/// - a flag in all its places, "--mbs 4" and "--mbs=4" and "-b4" each in its form; absent, it goes to the end;
/// - a switch (values true and false) leaves its place to {flags};
/// - "--compile True" and its like are values, written as the command writes them;
/// - an override word "lr=1" ("+lr=1", "++lr=1"); absent, it goes to the end;
/// - a variable: in a leading "NAME=value" of the command or behind `env`, else in the environment;
/// - a key of a file: the word that names the file becomes {dir}/<its name>.
/// Words "NAME=value" before the program become variables. Braces in the user's words stand for themselves, but for
/// {dir}, {trial}, {port}, {slot}, {config}, {result} and the names of `braces`, which trials fill in.
/// Throws UserError that begins with the option's text: two of one name or one place, a flag without a value or within
/// a shell line, a file that the command does not name, a value of another kind than those to try.
VariedCommand vary_command(const std::vector<std::string>& command, const std::vector<Vary>& varied,
                           const CommandSurroundings& around, const Braces& braces = {});

/// The words `NAME=value` before the program.
std::size_t leading_assignments(const std::vector<std::string>& command);

/// Position of the word that is the script: a *.py or a module as read_command() finds it, else the first *.sh and its
/// like, else the program.
std::size_t script_word(const std::vector<std::string>& command);

}  // namespace krigtune::jobs
