#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "jobs/recipe/places.h"

namespace krigtune::jobs {

/// Changes the words of a command; words that are not named keep their text and order.
class CommandWriter {
 public:
  /// `with_placeholders` doubles the user's braces, so that they are literal in a session.
  CommandWriter(const Recipe& recipe, const RecipeJob& job, bool with_placeholders);

  /// Sets every occurrence of the flag's spellings and keeps its form; adds the flag if it is absent.
  void set_flag(const std::vector<std::string>& spellings, bool of_launcher, const std::string& value);
  /// Adds a flag without a value if it is absent.
  void set_switch(const std::string& flag, bool of_launcher);
  void set_override(const std::string& key, const std::string& value);
  /// Sets the word that begins with `prefix`; it stays last, whatever is added later.
  void set_tail(const std::string& prefix, const std::string& value);
  void add(const std::string& word, bool of_launcher);
  /// Sets the word at a position of the original command: its text, or the part after '='.
  void set_value_word(const JobFile& file, const std::string& value);

  /// Removes every occurrence of a flag with its values ("--wandb*" means all flags with this prefix), of overrides
  /// ("key=") and of tails. Returns the removed words.
  std::vector<std::string> remove(const std::string& flag, bool of_launcher);

  std::vector<std::string> take();

 private:
  void erase(std::size_t at);
  void insert(std::size_t at, const std::string& word);
  Region region(bool of_launcher) const;
  std::vector<std::string> remove_at(std::vector<FlagAt> places);

  std::vector<std::string> words_;
  std::string override_prefix_;
  std::vector<std::size_t> original_;  ///< position of each word in the original command; npos: new
  Region launcher_;
  std::size_t insertion_;
  std::size_t script_;                        ///< the first word after the script
  std::map<std::string, std::string> tails_;  ///< whole words, by prefix
};

/// Doubles braces.
std::string with_escaped_braces(const std::string& text);

}  // namespace krigtune::jobs
