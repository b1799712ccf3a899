#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "space/configuration.h"

// A recipe says how a kind of training job is told its parameters and what it prints: data, in JSON files beside the
// code (src/jobs/recipes) or of the user's.
//
//   Recipe recipe = find_recipe("megatron");            // or a path
//   const RecipeJob job = read_job(recipe, {argv, directory, variable, ranks});
//   own_values(recipe, job)                             // the baseline: what the command says now
//   runner_block(recipe, job, {"micro_batch"})          // how trials are run and measured
//   optimal_command(recipe, job, best)                  // the user's command with the best values: it trains
namespace krigtune::jobs {

/// Which commands something applies to: all that is said here must be true of them. Empty: any command.
struct CommandPattern {
  std::vector<std::string> launchers;     ///< one of these is among its launchers: "accelerate"
  std::vector<std::string> scripts;       ///< one of these is the script's file name; * stands for any text
  std::vector<std::string> modules;       ///< one of these is the module behind -m
  std::vector<std::string> programs;      ///< one of these: words that follow each other, as in "trl sft"
  std::vector<std::string> flags;         ///< all of these are there: "--fsdp", or with its value "--fsdp_version 2"
  std::vector<std::string> any_flag;      ///< at least one of these
  std::vector<std::string> bare;          ///< all of these are there without a value
  std::vector<std::string> without;       ///< none of these
  std::vector<std::string> keys;          ///< all of these are in the command's files: "distributed_type FSDP"
  std::vector<std::string> without_keys;  ///< none of these

  bool is_empty() const;
};

/// One way in which a job is told a value. It is read from wherever it is found first: flag, override, tail, words,
/// environment, file, else `otherwise`; it is written to the first of these that the place has.
struct Place {
  CommandPattern where;            ///< commands that it applies to
  std::vector<std::string> flags;  ///< spellings of the flag; the first is the one that is added
  bool of_launcher = false;        ///< flags (and words) are options of the launcher, not of the script
  std::string override_key;        ///< a word key=value, as Hydra and OmegaConf take them
  std::string tail;                ///< the last word of the command begins so: "activation_checkpoint:"
  std::string env;                 ///< a variable of the environment
  std::string file;                ///< which of the recipe's files has the key ("": the first)
  std::string key;                 ///< a key there, dotted
  double times = 1.0;              ///< the parameter is this many times the number that the job is told
  std::vector<std::pair<space::Value, std::string>> values;  ///< what the job calls a value: {3, "FULL_SHARD"}
  /// Whole words for a value: {"full", {"--recompute-granularity", "full"}}. A word that is a placeholder takes the
  /// value of that parameter.
  std::vector<std::pair<space::Value, std::vector<std::string>>> words;
  std::vector<std::pair<space::Value, std::vector<std::string>>> also;  ///< other words that mean it; never written
  std::optional<space::Value> otherwise;                                ///< what a job does that says nothing
  bool is_read_only = false;                                            ///< it is read there, and never changed

  bool is_written() const;  ///< false: it can only be read
};

/// A parameter of the search, a size of the model, or the batch.
struct RecipeValue {
  std::string name;
  std::vector<Place> places;  ///< the first that applies to the command counts
  Json vary;                  ///< values worth trying, as in a session's space; null: not varied unless asked for
};

/// A file that the command names and that holds values.
struct RecipeFile {
  std::string name;
  std::vector<std::string> flags;     ///< the word behind one of these names it; none: the script's first word that
  std::vector<std::string> suffixes;  ///< ends in one of these. With flags: what the name must end in; none: anything
  bool of_launcher = false;           ///< the flags are the launcher's
};

/// Words that only trials get: they stop early, save nothing and log every step. A flag or an override that the command
/// has gets the new value.
struct RecipeWords {
  CommandPattern where;
  std::vector<std::string> words;
};

/// A variable of the environment.
struct RecipeVariable {
  std::string name;
  std::string value;
  CommandPattern where;
};

/// A key of a file that only trials get; the value may have placeholders, and {steps}.
struct RecipeKey {
  std::string file;
  std::string key;
  std::string value;
};

struct Recipe {
  std::string name;
  std::string summary;                    ///< one line
  std::string example;                    ///< how such a job is tuned: a command line
  std::string versions;                   ///< of the framework that it was written for
  std::string instead;                    ///< another way to tune such jobs: the command line; "": this one
  bool is_last_resort = false;            ///< recognised only where no other recipe is
  std::vector<CommandPattern> recognise;  ///< any of these
  std::vector<RecipeFile> files;          ///< the first is where keys are without "file"
  std::vector<RecipeValue> parameters;
  std::vector<std::string> constraints;  ///< of the session; {name} stands for the command's own value
  space::Configuration fixed;            ///< what the framework always does
  RecipeValue train_batch_size;          ///< no places: it follows from micro-batch and accumulation
  RecipeValue data_parallel;             ///< where the job is told its data-parallel ranks; no places: nowhere
  std::string framework;                 ///< whose models apply: a word of workload/framework; "": none do
  std::vector<RecipeValue> model;        ///< layers, hidden, ..., preset, hf_config, precision
  std::vector<std::string> remove;       ///< flags, overrides ("key=") and tails that trials run without; * at the end
  std::vector<RecipeWords> add;
  std::vector<RecipeKey> set;
  std::vector<RecipeVariable> env;           ///< of trials
  std::vector<RecipeVariable> training_env;  ///< of trials and of the command that trains
  Json measure = Json::object();             ///< as in a session's runner
  Json checks = Json::array();               ///< as in a session's runner
  std::vector<std::string> oom_patterns;
  std::int64_t warmup_steps = 3;
  std::int64_t measure_steps = 10;
  std::vector<std::string> notes;  ///< what a user should know: traps
  Json json;                       ///< the whole as it was read

  const RecipeValue* find(const std::string& parameter) const;  ///< nullptr: it does not know it
};

/// Throws UserError with file and JSON pointer. A recipe may be "like" a shipped one: what it does not say is that
/// one's.
Recipe read_recipe(const Json& json, const std::string& source);

/// In alphabetical order.
const std::vector<Recipe>& shipped_recipes();

/// A shipped one by its name, any other by its path (it has a '/' or ends in .json). Throws UserError.
Recipe find_recipe(const std::string& name_or_path);

/// The recipe for a command. nullptr: none knows it. Two that do are a UserError that names both, unless all but one
/// are a last resort. `recipes` must outlive what is returned.
const Recipe* recognise(const std::vector<std::string>& argv, const std::vector<Recipe>& recipes);

/// The keys of a recipe as a JSON Schema.
Json recipe_schema();

}  // namespace krigtune::jobs
