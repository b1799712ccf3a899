#pragma once
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/installed/framework_names.h"
#include "jobs/recipe/recipe.h"

// Compares the flags and keys of a recipe with those of the framework that is installed.
namespace krigtune::jobs {

/// A flag or key that the recipe mentions and the framework does not have.
struct GoneName {
  std::string written;             ///< as the recipe writes it
  std::vector<std::string> parts;  ///< where: "parameters/micro_batch", "ignored"
};

/// A comparison. Each flag or key of the framework is counted once: sorted, by_pattern or unsorted.
struct NameCheck {
  std::size_t sorted = 0;               ///< names of the framework that the recipe mentions
  std::vector<std::string> by_pattern;  ///< those that only a name with * of the recipe matches: nobody may have looked
  std::vector<std::string> unsorted;    ///< those that it does not know: new, or overlooked
  std::vector<GoneName> gone;
  std::vector<std::string> elsewhere;  ///< names of the recipe that are known to be of another version or program
};

/// Names that the recipe only inherits are not reported as gone, and none is where a source could not be asked. A name
/// that occurs only where a command must not have it is not reported either, because it may be another framework's.
NameCheck check_names(const Recipe& recipe, const FrameworkNames& framework);

/// The comparison of one recipe.
struct RecipeCheck {
  std::string recipe;
  std::string written_for;  ///< Recipe::versions
  struct Package {
    std::string name;
    std::string installed;  ///< version
    std::string compared;   ///< version that the recipe was last compared with; "": it was not
  };
  std::vector<Package> packages;
  FrameworkNames framework;
  NameCheck names;
};

/// Compares with an answer of the framework; `framework` has packages.
RecipeCheck check_recipe(const Recipe& recipe, FrameworkNames framework);

/// Formats a comparison, with all names that are gone or not sorted: the text of `recipes NAME --check PYTHON`.
std::string check_text(const RecipeCheck& check);

Json to_json(const RecipeCheck& check);

}  // namespace krigtune::jobs
