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

// A command seen through its recipe.
namespace krigtune::jobs {

/// What is typed, and what surrounds it.
struct JobInputs {
  std::vector<std::string> argv;
  std::filesystem::path directory;                               ///< that the command's paths are relative to
  std::function<std::string(const std::string&)> variable = {};  ///< of the environment; "": not set; empty: none is
  std::optional<std::int64_t> ranks = std::nullopt;  ///< where the command does not say them: whoever knows does
};

/// A file that the command names.
struct JobFile {
  std::string name;          ///< in the recipe
  std::string path;          ///< as the command names it; "": the word holds the JSON itself
  std::size_t word = 0;      ///< the word that names it, alone or behind '='
  bool is_joined = false;    ///< behind '='
  ConfigValues values = {};  ///< its scalars by dotted key
};

struct RecipeJob {
  Command command;  ///< `script` is the last word of the program: "sft" of "trl sft"
  std::vector<JobFile> files;
  JobInputs inputs;
  std::optional<std::int64_t> ranks;

  const JobFile* file(const std::string& name) const;  ///< nullptr: the command names none
};

/// Reads the command and the files that the recipe says it names. Throws UserError: no words, a file that cannot be
/// read or is no YAML, TOML or JSON, a command that names the recipe's script nowhere.
RecipeJob read_job(const Recipe& recipe, JobInputs inputs);

/// Whether the pattern is true of the command.
bool applies(const CommandPattern& pattern, const RecipeJob& job);

/// What the command says now.
struct OwnValues {
  space::Configuration configuration;  ///< each parameter that the recipe knows and the command (or a default) says
  std::optional<std::int64_t> train_batch_size;  ///< sequences of a step; empty: not known
  std::int64_t context_parallel = 1;             ///< ranks that share a sequence beside those of tensor_parallel
  std::vector<std::string> unknown;  ///< parameters whose words are none that the recipe knows: they stay as they are
  std::vector<std::string> remarks;  ///< sentences
};

/// Throws UserError for a flag without its value and a number that is none.
OwnValues own_values(const Recipe& recipe, const RecipeJob& job);

/// What a value is, by the first place that applies to the command. Empty: not said, and there is no default.
std::optional<space::Value> read_value(const RecipeValue& value, const RecipeJob& job);
/// The place that a value is written to: the first that applies to the command. nullptr: it can only be read there, or
/// the command does not name the file.
const Place* written_place(const RecipeValue& value, const RecipeJob& job);

/// The session's "workload": model, precision, framework and, where known, train_batch_size. Null: the command does not
/// say the sizes, or the framework has no models; `why` then says which is missing. Paths in it are absolute.
Json model_facts(const Recipe& recipe, const RecipeJob& job, std::string* why = nullptr);

}  // namespace krigtune::jobs
