#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "jobs/installed/framework_names.h"
#include "jobs/recipe/config_values.h"
#include "space/configuration.h"

// A recipe describes how a kind of training job takes its parameters and what it prints. Recipes are data: JSON files
// beside the code (src/jobs/recipes), or the user's own.
//
//   Recipe recipe = find_recipe("megatron");            // or a path
//   const RecipeJob job = read_job(recipe, {argv, directory, variable, ranks});
//   own_values(recipe, job)                             // the baseline: the command's present values
//   runner_block(recipe, job, {"micro_batch"})          // how trials are run and measured
//   optimal_command(recipe, job, best)                  // the user's command with the best values, for training
namespace krigtune::jobs {

/// Selects commands: all conditions stated here must be met. If empty, every command matches.
struct CommandPattern {
  std::vector<std::string> launchers;        ///< one of these is among its launchers: "accelerate"
  std::vector<std::string> scripts;          ///< one of these is the script's file name; * matches any text
  std::vector<std::string> without_scripts;  ///< none of these is it
  std::vector<std::string> modules;          ///< one of these is the module after -m
  std::vector<std::string> programs;         ///< one of these occurs: consecutive words, as in "trl sft"
  std::vector<std::string> flags;            ///< all of these occur: "--fsdp", or with a value "--fsdp_version 2"
  std::vector<std::string> any_flag;         ///< at least one of these
  std::vector<std::string> bare;             ///< all of these occur without a value
  std::vector<std::string> without;          ///< none of these
  /// All of these are in the command's files or overrides: "distributed_type FSDP"; * in a value matches any text. Of a
  /// list in a file one element has the value.
  std::vector<std::string> keys;
  std::vector<std::string> without_keys;  ///< none of these

  bool is_empty() const;
};

/// One way in which a job takes a value. It is read from the first of these where it is found: operand, flag, override,
/// tail, words, environment, file, otherwise `otherwise`. It is written to the first of these that the place has.
struct Place {
  CommandPattern where;            ///< commands to which it applies
  bool is_operand = false;         ///< the first word that is neither a flag nor the value of one; never written
  std::vector<std::string> flags;  ///< spellings of the flag; the first is used to add it
  bool of_launcher = false;        ///< flags (and words) are options of the launcher and not of the script
  std::string override_key;        ///< a word key=value, as in Hydra and OmegaConf, behind the recipe's override_prefix
  std::string tail;                ///< prefix of the last word of the command: "activation_checkpoint:"
  std::string env;                 ///< an environment variable
  std::string file;                ///< the recipe's file that contains the key ("": the first)
  std::string key;                 ///< a dotted key in that file
  double times = 1.0;              ///< the parameter is this many times the job's number,
  std::string times_of;            ///< times this size of the model, which precedes it: "hidden",
  std::int64_t rounded_up = 0;     ///< rounded up to a multiple of this; 0: not rounded
  std::int64_t rounded_down = 0;   ///< or down
  /// Further flags and keys of the same file that state the same. They are written where the command has them, and
  /// never read.
  std::vector<std::string> copy_flags;
  std::vector<std::string> copy_keys;
  /// Flags of a command without the others; they are never written, and removed where the place is. The parameter is
  /// a quotient of sizes of the model and other parameters, `quotient_of`, divided by their number:
  /// "layers / pipeline_parallel".
  std::vector<std::string> quotient_flags;
  std::string quotient_of;
  bool is_shared = false;  ///< the job divides its number among all ranks; the parameter is that of one rank
  /// The job's number is that of groups of so many data-parallel ranks: these ranks divided by the parameter, which is
  /// 0 for a single group.
  bool is_groups = false;
  /// With is_groups: flags and keys of the same file that state the parameter itself, or for 0 all data-parallel ranks.
  /// They are written where the command has them, and never read.
  std::vector<std::string> size_flags;
  std::vector<std::string> size_keys;
  bool is_of_node = false;  ///< the value if the job states nothing is the number of ranks of a node
  /// The job's names of values: {3, "FULL_SHARD"}; * in a name matches any text, and is never written.
  std::vector<std::pair<space::Value, std::string>> values;
  std::vector<std::string> nothing;  ///< words that leave the value open, so that `otherwise` counts: "auto"
  /// Whole words for a value: {"full", {"--recompute-granularity", "full"}}. A word that is a placeholder has the value
  /// of that parameter.
  std::vector<std::pair<space::Value, std::vector<std::string>>> words;
  /// Other words with this meaning; never written.
  std::vector<std::pair<space::Value, std::vector<std::string>>> also;
  /// The value if the job states nothing; of a shared number it is the job's.
  std::optional<space::Value> otherwise;
  bool is_list = false;       ///< the flag, or the key, has several values: all of them, with commas between
  bool is_read_only = false;  ///< it is read here and never changed
  std::string assumed;        ///< the value is taken for granted, for this reason: "that of its tokenizer"

  bool is_written() const;  ///< false: it can only be read
};

/// A parameter of the search, a size of the model, or the batch.
struct RecipeValue {
  std::string name;
  std::vector<Place> places;  ///< the first one that applies to the command counts
  Json vary;                  ///< values worth trying, as in a session's space; null: varied only on request
};

/// Something that a command may state, that changes time or memory, and that the models do not know.
struct RecipeGap {
  CommandPattern where;
  std::string what;      ///< "adapters (LoRA)"
  std::string effect;    ///< on what is predicted: "much less memory". Without the word memory it is of time alone
  bool freezes = false;  ///< most weights are not trained
  /// Keys of the workload's block "training", as "lora", or "optimizer": if the command says one, this is no gap.
  std::vector<std::string> unless_read;

  /// Returns whether it changes memory, so that memory excludes nothing.
  bool changes_memory() const { return effect.find("memory") != std::string::npos; }
};

/// A file with values that the command names.
struct RecipeFile {
  std::string name;
  std::vector<std::string> flags;     ///< the word after one of these names it; if empty, the script's first word that
  std::vector<std::string> suffixes;  ///< ends in one of these. With flags: allowed suffixes; if empty, any
  bool of_launcher = false;           ///< the flags are the launcher's
  bool is_first = false;              ///< without flags: only the script's very first word can be it
  /// All words of the script that are no flag and no flag's value are such files, and together they have the keys. A
  /// word without one of the suffixes gets the first of them.
  bool is_each = false;
  std::vector<std::string> directory_flags;  ///< with is_each: the word after one of these is the files' directory
  bool takes_hyphens = false;                ///< "micro-batch" of the file's top level is the key micro_batch
  /// Files that come with the framework, by the names that commands use. They stand in for a file that is not there.
  std::vector<std::pair<std::string, ConfigValues>> built_in;
};

/// Commands of a recipe that another framework trains than the others.
struct RecipeFramework {
  CommandPattern where;
  std::string framework;
};

/// Words that only trials get: they stop early, save nothing and log every step. A flag or override that the command
/// already has gets the new value.
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

/// A key of a file that only trials get; the value may contain placeholders, including {steps}. null: as if the file
/// did not have the key.
struct RecipeKey {
  std::string file;
  std::string key;
  std::string value;
  CommandPattern where;
};

struct Recipe {
  std::string name;
  std::string summary;                    ///< one line
  std::string example;                    ///< a command line that tunes such a job
  std::string versions;                   ///< versions of the framework for which it was written
  std::string instead;                    ///< another, preferable command line to tune such jobs; "": none
  bool is_last_resort = false;            ///< recognised only if no other recipe matches
  std::vector<std::string> before;        ///< recipes that it goes before where both match
  std::vector<CommandPattern> recognise;  ///< any of these
  std::vector<RecipeFile> files;          ///< the first is the default for keys without "file"
  std::string override_prefix;            ///< what overrides begin with: "", or "--" for words --key=value
  std::vector<RecipeValue> parameters;
  std::vector<std::string> constraints;  ///< constraints of the session; {name} is replaced by the command's own value
  space::Configuration fixed;            ///< values that the framework always has
  RecipeValue train_batch_size;          ///< no places: it follows from micro-batch and accumulation
  RecipeValue data_parallel;             ///< where the job takes its number of data-parallel ranks; no places: nowhere
  std::string framework;                 ///< the framework whose models apply, a word of workload/framework; "": none
  std::vector<RecipeFramework> frameworks;  ///< the first whose "where" applies to the command counts more
  std::vector<RecipeValue> model;           ///< layers, hidden, ..., preset, hf_config, precision
  std::vector<RecipeValue> training;        ///< lora/rank, lora/targets, ..., optimizer, kernels, compile, loss, states
  std::vector<RecipeGap> not_modelled;
  /// Flags and keys that change nothing that is predicted, without dashes before them and with underscores for others;
  /// may end with *.
  std::vector<std::string> ignored;
  std::vector<std::string> remove;  ///< flags, overrides ("key=") and tails that trials omit; may end with *
  std::vector<RecipeWords> add;
  std::vector<RecipeKey> set;
  std::vector<RecipeVariable> env;           ///< for trials
  std::vector<RecipeVariable> training_env;  ///< for trials and for the command that trains
  Json measure = Json::object();             ///< as in a session's runner
  Json checks = Json::array();               ///< as in a session's runner
  std::vector<std::string> oom_patterns;
  std::int64_t warmup_steps = 3;
  std::int64_t measure_steps = 10;
  std::vector<std::string> notes;  ///< pitfalls that a user should know
  InstalledFramework installed;    ///< what of the framework lists its flags; may have no sources
  std::vector<std::string> bases;  ///< shipped recipes from which it inherits names ("like", "caveats_of")
  Json json;                       ///< the complete recipe as it was read

  const RecipeValue* find(const std::string& parameter) const;  ///< nullptr if the recipe does not know the parameter
};

/// Throws UserError with file and JSON pointer. A recipe may be "like" a shipped one and then inherits what it does not
/// state.
Recipe read_recipe(const Json& json, const std::string& source);

/// Returns the shipped recipes in alphabetical order.
const std::vector<Recipe>& shipped_recipes();

/// Returns a shipped recipe by name, or another one by path (with a '/' or ending in .json). Throws UserError.
Recipe find_recipe(const std::string& name_or_path);

/// Returns the recipe for a command, or nullptr if none matches. Throws UserError naming both if two match, unless all
/// but one are a last resort or give way (`before`). `recipes` must outlive the result.
const Recipe* recognise(const std::vector<std::string>& argv, const std::vector<Recipe>& recipes);

/// Returns the JSON Schema of a recipe.
Json recipe_schema();

}  // namespace krigtune::jobs
