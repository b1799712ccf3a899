#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "jobs/command/words.h"
#include "jobs/recipe/recipe_job.h"

// Where values stand among the words of a command.
namespace krigtune::jobs {

/// Words [begin, end).
struct Region {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// Words behind the script, or the options of the launcher that starts the ranks (empty without one).
Region region_of(const Command& command, bool of_launcher);
/// Where a word may be added to the launcher's options: behind "torchrun" or "accelerate launch".
std::size_t launcher_insertion(const Command& command);

/// A word key=value. Empty: it is none. Hydra's + before the key is left out.
struct OverrideWord {
  std::string key;
  std::string value;
  std::string prefix;  ///< "", "+" or "++"
};
std::optional<OverrideWord> override_in(const std::string& word);

/// Words that one flag of a list of words stands for: {"--recompute", "full"}.
struct FlagWords {
  std::string flag;
  std::optional<std::string> value;  ///< empty: a switch
};
std::vector<FlagWords> flags_in(const std::vector<std::string>& words);
/// The flags that a place's words speak of, each once.
std::vector<std::string> flags_of(const Place& place);

/// Whether two words mean the same: upper and lower case, and the ways of writing yes and no.
bool same_word(const std::string& a, const std::string& b);

/// What a place says.
struct Reading {
  std::optional<space::Value> value;  ///< empty: nothing, or nothing that is known
  bool is_said = false;               ///< by the command itself, not by a default
  bool is_unknown = false;            ///< it says something that the recipe does not know
};
/// Throws UserError for a flag without a value.
Reading read_place(const Place& place, const RecipeJob& job);
/// The first place that applies to the command. nullptr: none does.
const Place* place_of(const RecipeValue& value, const RecipeJob& job);

/// The placeholder or text that says `value` there, without the map of values: "{micro_batch}",
/// "{reduce_bucket_size/262144:.0f}".
std::string placeholder_of(const std::string& parameter, const Place& place);
/// The text that says `value`. Empty: the place cannot say it.
std::optional<std::string> text_of(const space::Value& value, const Place& place);
/// The words by which a flag, an override or a tail says a text: {"--mbs", "4"}, {"train.mbs=4"}.
std::vector<std::string> words_for(const Place& place, const std::string& text);

}  // namespace krigtune::jobs
