#pragma once
#include <string>
#include <utility>
#include <vector>

#include "jobs/recipe/recipe_job.h"
#include "result/export.h"

namespace krigtune::result {

/// What a kind of job is told of a configuration, by its recipe: all of it, also what the job does by itself.
struct RecipeWords {
  std::vector<std::string> words;                        ///< of the command, in the recipe's order
  std::vector<std::pair<std::string, std::string>> env;  ///< variables that training needs
  /// Flags that say something else where the user's own command has them: a switch is not undone by another flag.
  std::vector<std::string> absent;
  std::vector<Omission> omissions;
};

/// `command`: one of that recipe's, with its ranks, what decides between its ways of saying things, and nothing else.
/// `file`: whose omissions they are. Throws UserError where the command is none of the recipe's.
RecipeWords words_by_recipe(const jobs::Recipe& recipe, const std::vector<std::string>& command,
                            const space::Configuration& configuration, const std::string& file);

/// Throws UserError unless the names of the run's parameters mean what they are called: it has a workload or a recipe.
/// `format`: for whom.
void require_known_names(const report::RunView& run, const char* format);

}  // namespace krigtune::result
