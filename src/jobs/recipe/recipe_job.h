#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobs/command/command.h"
#include "jobs/recipe/config_values.h"
#include "jobs/recipe/recipe.h"

// A command interpreted by its recipe.
namespace krigtune::jobs {

/// The typed command and its surroundings.
struct JobInputs {
  std::vector<std::string> argv;
  std::filesystem::path directory;  ///< base of the command's relative paths
  /// Environment variable; "" if not set; null: no variable is set.
  std::function<std::string(const std::string&)> variable = {};
  std::optional<std::int64_t> ranks = std::nullopt;  ///< used if the command does not state them
};

/// A file that the command names.
struct JobFile {
  std::string name;          ///< in the recipe
  std::string path;          ///< as in the command; "": the word contains the JSON itself
  std::size_t word = 0;      ///< the word that names it, alone or after '='; none for a file of the environment
  bool is_joined = false;    ///< after '='
  ConfigValues values = {};  ///< its scalars by dotted key; "${a.b}" has the value of the key a.b
  /// Keys that the file spells with hyphens: micro_batch -> "micro-batch".
  std::map<std::string, std::string> spelled = {};
  bool is_built_in = false;        ///< it is not there: these are the values of a file that comes with the framework
  bool is_of_environment = false;  ///< a variable of the environment names it, and no word

  /// Returns the key as "set" of a runner takes it: as the file spells it, or with "+" if it is missing.
  std::string key_to_set(const std::string& key) const;
  /// Returns whether trials can read a copy of it with other values.
  bool can_be_copied() const { return !is_built_in && !is_of_environment; }
};

struct RecipeJob {
  Command command;  ///< `script` is the last word of the program: "sft" in "trl sft"
  std::vector<JobFile> files;
  JobInputs inputs;
  std::string override_prefix;  ///< that of the recipe
  /// Files whose values nobody knows, by the recipe's name: they come with another version of the framework. Defaults
  /// of their keys do not count.
  std::map<std::string, std::string> unread;
  std::optional<std::int64_t> ranks;
  /// Data-parallel ones, if a parameter is said by groups of them and what divides the ranks is known.
  std::optional<std::int64_t> data_ranks;
  std::map<std::string, double> quotients;  ///< what a command divides, by Place::quotient_of, if it says all of it

  const JobFile* file(const std::string& name) const;  ///< nullptr if the command names none
  /// Of several files with that name the one that has the key, otherwise the first.
  const JobFile* file(const std::string& name, const std::string& key) const;
};

/// Reads the command and the files that it names according to the recipe. Throws UserError for an empty command, a file
/// that cannot be read or parsed, and a command that does not contain the recipe's script.
RecipeJob read_job(const Recipe& recipe, JobInputs inputs);
/// The same for any command, without the files that cannot be read.
RecipeJob read_any_job(const Recipe& recipe, JobInputs inputs);

/// Returns the framework whose models apply to the command; "" if none does.
std::string framework_of(const Recipe& recipe, const RecipeJob& job);

/// Returns whether the pattern matches the command.
bool applies(const CommandPattern& pattern, const RecipeJob& job);

/// The present values of the command.
struct OwnValues {
  space::Configuration configuration;  ///< every parameter that the recipe knows and the command (or a default) states
  std::optional<std::int64_t> train_batch_size;  ///< sequences per step; empty if unknown
  std::vector<std::string> unknown;  ///< parameters with words that the recipe does not know; they are not changed
  std::vector<std::string> remarks;  ///< sentences
  std::vector<std::string> assumed;  ///< phrases: "micro_batch 4: --batch_size is taken for ..."
};

/// Throws UserError for a flag without a value and for an invalid number.
OwnValues own_values(const Recipe& recipe, const RecipeJob& job);

struct SaidValue {
  space::Value value;
  std::string assumed;   ///< why it is taken for granted; "" if the command or its framework determines it
  std::string times_of;  ///< the size of the model by which it is still to be multiplied; "": none
};
/// Returns a value from the first place that applies to the command. Empty if it is not stated and has no default.
std::optional<SaidValue> read_said(const RecipeValue& value, const RecipeJob& job);
std::optional<space::Value> read_value(const RecipeValue& value, const RecipeJob& job);
/// Returns the place where a value is written: the first that applies to the command. nullptr if that place is
/// read-only, or if the command does not name the file.
const Place* written_place(const RecipeValue& value, const RecipeJob& job);

/// Returns the session's "workload": model, precision, framework and, if known, train_batch_size. Null if the command
/// does not state the sizes or the framework has no models; `why` then says what is missing. Paths are absolute.
Json model_facts(const Recipe& recipe, const RecipeJob& job, std::string* why = nullptr);

}  // namespace krigtune::jobs
