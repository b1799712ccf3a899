#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/command/words.h"
#include "jobs/recipe/recipe_job.h"

// The places of values among the words of a command.
namespace krigtune::jobs {

/// Words [begin, end).
struct Region {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// Returns the words after the script, or the options of the launcher that starts the ranks (empty without one).
Region region_of(const Command& command, bool of_launcher);
/// Returns where a word can be added to the launcher's options: after "torchrun" or "accelerate launch".
std::size_t launcher_insertion(const Command& command);

/// Parses a word key=value; empty if it is not one. `key` does not include Hydra's "+". Behind the prefix "--", dashes
/// in the key are underscores, and a word without a value says "true".
struct OverrideWord {
  std::string key;
  std::string value;
  std::string prefix;  ///< "", "+", "++", or the recipe's own
};
std::optional<OverrideWord> override_in(const std::string& word, const std::string& prefix);

/// Returns whether the text is the pattern, in which each * matches any text. Case counts.
bool fits(std::string_view pattern, std::string_view text);
/// Returns whether a text is the value that a recipe names: the same word, whatever its case, or what fits its pattern.
bool is_named_by(const std::string& name, const std::string& text);

/// A flag with its value, from a list of words: {"--recompute", "full"}.
struct FlagWords {
  std::string flag;
  std::optional<std::string> value;  ///< empty: a switch
};
std::vector<FlagWords> flags_in(const std::vector<std::string>& words);
/// Returns the flags that a place's words contain, each once.
std::vector<std::string> flags_of(const Place& place);

/// Returns whether two words are equivalent, ignoring case and treating the spellings of yes and no as equal.
bool same_word(const std::string& a, const std::string& b);

/// The value found at a place.
struct Reading {
  std::optional<space::Value> value;  ///< empty: no value, or an unknown one
  bool is_said = false;               ///< stated by the command itself and not by a default
  bool is_unknown = false;            ///< the command states something that the recipe does not know
};
/// Throws UserError for a flag without a value.
Reading read_place(const Place& place, const RecipeJob& job);
/// Returns the first place that applies to the command, or nullptr.
const Place* place_of(const RecipeValue& value, const RecipeJob& job);

/// Returns the placeholder or text that writes `value` there, apart from the map of values: "{micro_batch}",
/// "{reduce_bucket_size/262144:.0f}", "{gradient_accumulation_steps*ranks}".
std::string placeholder_of(const std::string& parameter, const Place& place);
/// Returns the same of Place::size_flags, for a parameter or its own value: "{hybrid_shard + dp * (hybrid_shard ==
/// 0)}".
std::string size_placeholder_of(const std::string& parameter);

/// The ranks of a job: all of them, among which a shared number is divided, and the data-parallel ones, of which there
/// are groups; 0: not known.
struct RanksToWrite {
  std::int64_t all = 1;
  std::int64_t data = 0;
};
/// Returns the text that writes `value`; empty if the place cannot express it.
std::optional<std::string> text_of(const space::Value& value, const Place& place, const RanksToWrite& ranks = {});
/// Returns the words by which a flag, an override or a tail states a text: {"--mbs", "4"}, {"train.mbs=4"}.
std::vector<std::string> words_for(const Place& place, const std::string& text,
                                   const std::string& override_prefix = "");

}  // namespace krigtune::jobs
