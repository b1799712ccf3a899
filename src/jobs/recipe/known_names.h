#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/recipe/recipe.h"

namespace krigtune::jobs {

/// Returns the name of a flag or key without dashes before it and without a value behind it, in lower case and with
/// underscores: "--Learning-Rate=3" and the key learning_rate have one name.
std::string plain_name(std::string_view word);

/// Removes the numbers of list elements from the end of a key: "modules.0" is an element of the list "modules".
std::string element_free(const std::string& key);

/// A flag or key that a recipe mentions.
struct KnownName {
  std::string name;     ///< as from plain_name; may end with *
  std::string written;  ///< as the recipe writes it
  std::string part;     ///< "parameters/micro_batch", "ignored"
  bool of_launcher = false;
  enum class Use {
    kValue,      ///< its value is read or written
    kCondition,  ///< a part of the recipe applies only to commands that have it
    kExcluded    ///< or that do not have it, so that it may belong to any other framework
  };
  Use use = Use::kValue;
};

/// The names that a recipe has some use for.
class KnownNames {
 public:
  explicit KnownNames(const Recipe& recipe);

  const std::vector<KnownName>& all() const { return all_; }  ///< a name may occur several times
  bool knows_exactly(const std::string& name) const { return names_.contains(name); }
  bool knows_below(const std::string& group) const;  ///< "fsdp_config.version" is below "fsdp_config"
  bool knows(const std::string& name) const;         ///< exactly, or by a name that ends with *
  bool reads(const std::string& name) const;         ///< as a value of the job: a parameter, its model, its batch

 private:
  void add(const std::string& word, const std::string& part, bool of_launcher = false,
           KnownName::Use use = KnownName::Use::kValue);
  void add(const std::vector<std::string>& words, const std::string& part, bool of_launcher = false,
           KnownName::Use use = KnownName::Use::kValue);
  void add(const CommandPattern& pattern, const std::string& part);
  void add(const RecipeValue& value, const std::string& part, const Recipe& recipe);

  std::vector<KnownName> all_;
  std::set<std::string> names_;
  std::vector<std::string> prefixes_;
};

}  // namespace krigtune::jobs
