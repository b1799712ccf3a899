#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "jobs/recipe/places.h"

namespace krigtune::jobs {

/// The words of a command while they are changed; everything that is not named stays as it was, in its order.
class CommandWriter {
 public:
  /// With `with_placeholders` the user's braces are doubled, so that they mean themselves in a session.
  CommandWriter(const Recipe& recipe, const RecipeJob& job, bool with_placeholders);

  /// Every occurrence of the flag's spellings gets the value and keeps its form; an absent flag is added.
  void set_flag(const std::vector<std::string>& spellings, bool of_launcher, const std::string& value);
  /// Adds a flag without a value where it is absent.
  void set_switch(const std::string& flag, bool of_launcher);
  void set_override(const std::string& key, const std::string& value);
  /// The one word that begins so comes last, whatever is added.
  void set_tail(const std::string& prefix, const std::string& value);
  void add(const std::string& word, bool of_launcher);
  /// The word at a position that the command had when it was read: what it says, or what is behind its '='.
  void set_value_word(const JobFile& file, const std::string& value);

  /// Takes away every occurrence of a flag ("--wandb*" of all that begin so), with its values in place, of overrides
  /// ("key=") and of tails. Returns the words that are gone.
  std::vector<std::string> remove(const std::string& flag, bool of_launcher);

  std::vector<std::string> take();

 private:
  void erase(std::size_t at);
  void insert(std::size_t at, const std::string& word);
  Region region(bool of_launcher) const;
  std::vector<std::string> remove_at(std::vector<FlagAt> places);

  std::vector<std::string> words_;
  std::vector<std::size_t> original_;  ///< where each word stood in the command; npos: it is new
  Region launcher_;
  std::size_t insertion_;
  std::size_t script_;                        ///< the first word behind the script
  std::map<std::string, std::string> tails_;  ///< by prefix, whole words
};

/// Doubles braces.
std::string with_escaped_braces(const std::string& text);

}  // namespace krigtune::jobs
