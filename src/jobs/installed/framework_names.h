#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/block.h"
#include "core/clock.h"
#include "core/json.h"

// Flags and keys as an installed framework has them. The framework itself is asked: a program in its Python
// (ask_framework.py) imports what a recipe names and lists the names that it finds.
//
//   const FrameworkNames names = ask_framework(recipe.installed, "venv/bin/python", kAskTimeoutS, clock);
//   if (names.packages.empty()) ...            // that Python does not have the framework
//   check_names(recipe, names)                 // jobs/recipe/name_check.h
namespace krigtune::jobs {

/// An object of the framework that lists names.
struct NameSource {
  /// What the object is. "argparse": a parser, or a function that returns one or adds flags to one. "source":
  /// programs below the module's folder that call add_argument, or read keys of `cfg`. "fields": a class with fields,
  /// those within it included, or a function with parameters. "values": an object with fields, or a function that makes
  /// one. "yaml": files below the module's folder. "hydra": a configuration there, composed.
  std::string kind;
  std::string module;
  std::string object;  ///< a dotted name in it; of source, yaml and hydra a path, where * matches any text
  std::vector<std::string> without;  ///< names and groups that a command cannot state
  bool of_launcher = false;          ///< the recipe need not know all of these names: they are the launcher's
};

/// How a recipe's framework is asked.
struct InstalledFramework {
  /// Distributions ("torchtitan") with the version that the recipe was last compared with. The first is the framework.
  std::vector<std::pair<std::string, std::string>> packages;
  std::vector<NameSource> sources;
  /// Names of the recipe that the sources do not have, and whose they are: {"job.*", "torchtitan 0.2"}.
  std::vector<std::pair<std::string, std::string>> elsewhere;
  std::string ran;  ///< what of the framework was run by krigtune; "": nothing
};

/// Declares the keys of a recipe's block "installed".
Block<InstalledFramework> installed_block();

/// The answer of an installed framework.
struct FrameworkNames {
  std::vector<std::pair<std::string, std::string>> packages;  ///< those that are installed, with their versions
  std::vector<std::vector<std::string>> names;                ///< the spellings of each flag or key
  std::vector<std::vector<std::string>> launcher_names;
  std::vector<std::string> open;      ///< keys below which anything may be written; "": any key
  std::vector<std::string> troubles;  ///< a line for each source that could not be asked
};

/// Asks the framework that is installed for an interpreter. The result has no packages if none of them is installed.
/// Throws UserError, with one line, if the interpreter does not exist, fails, gives no sensible answer, or takes longer
/// than `timeout_s`.
FrameworkNames ask_framework(const InstalledFramework& framework, const std::string& python, double timeout_s,
                             const Clock& clock);

/// Return an answer as JSON, and read it again. Reading throws UserError with the JSON pointer.
Json to_json(const FrameworkNames& names);
FrameworkNames framework_names_from(const Json& json, const std::string& source);

}  // namespace krigtune::jobs
