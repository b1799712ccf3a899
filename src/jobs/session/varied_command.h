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

/// The surroundings of a command.
struct CommandSurroundings {
  std::filesystem::path directory;  ///< base of its relative paths; absolute
  std::function<std::optional<std::string>(const std::string& name)> variable;  ///< environment variable
};

/// The user's command with placeholders for its values: keys of a session's runner `command`.
struct VariedCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  ///< variable, text with placeholders
  Json flags = Json::object();                           ///< for switches: parameter, value, words
  Json set = Json::object();                             ///< absolute path of a file, key, placeholder
  std::vector<Vary> varied;                              ///< with values as the command writes them ("True", "yes")
  space::Configuration own;                              ///< the command's own values
  /// Parameters that the command does not state: `own` has the first value to try.
  std::vector<std::string> absent;
  std::vector<std::string> remarks;  ///< one line each
};

/// The meaning of braces in the words.
struct Braces {
  /// Parameters that {name} refers to, in addition to the names that trials fill in.
  std::vector<std::string> names = {};
  bool are_escaped = false;  ///< the words already come from a session
};

/// Replaces each parameter's value at its place in the command; all other words stay unchanged:
/// - a flag at every occurrence, keeping its form: "--mbs 4", "--mbs=4", "-b4"; an absent flag is appended, and its own
/// value is the default that a script of Python declares (script_default.h);
/// - a switch (values true and false) is replaced by {flags};
/// - "--compile True" and similar words are values, written as the command writes them;
/// - an override word "lr=1" ("+lr=1", "++lr=1"); an absent one is appended;
/// - a variable: in a leading "NAME=value" of the command or after `env`, otherwise in the environment;
/// - a key of a file: the word that names the file becomes {dir}/<its name>.
///
/// Words "NAME=value" before the program become variables. Braces in the user's words are literal, except for {dir},
/// {trial}, {port}, {slot}, {config}, {result} and the names of `braces`, which trials fill in. Throws UserError that
/// begins with the option's text for a duplicate name or place, a flag without a value or inside a shell line, a file
/// that the command does not name, and a value of another kind than those to try.
VariedCommand vary_command(const std::vector<std::string>& command, const std::vector<Vary>& varied,
                           const CommandSurroundings& around, const Braces& braces = {});

/// Returns the number of words `NAME=value` before the program.
std::size_t leading_assignments(const std::vector<std::string>& command);

/// Returns the position of the script: a *.py or a module as found by read_command(), otherwise the first *.sh or
/// similar file, otherwise the program.
std::size_t script_word(const std::vector<std::string>& command);

}  // namespace krigtune::jobs
