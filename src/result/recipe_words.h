#pragma once
#include <string>
#include <utility>
#include <vector>

#include "jobs/recipe/recipe_job.h"
#include "result/export.h"

namespace krigtune::result {

/// How a kind of job states a configuration, by its recipe: all settings, including the job's defaults.
struct RecipeWords {
  std::vector<std::string> words;                        ///< of the command, in the recipe's order
  std::vector<std::pair<std::string, std::string>> env;  ///< variables that the training needs
  /// Flags that mean something else if the user's own command contains them: another flag does not undo a switch.
  std::vector<std::string> absent;
  std::vector<Omission> omissions;
};

/// `command`: a command of that recipe, from which only the ranks and the choice between alternative places are taken.
/// `file`: the file name in omissions. Throws UserError if the command does not match the recipe.
RecipeWords words_by_recipe(const jobs::Recipe& recipe, const std::vector<std::string>& command,
                            const space::Configuration& configuration, const std::string& file);

/// Returns "; translated: no trial ran with this program" unless the run's trials are jobs of that recipe.
std::string translated_note(const report::RunView& run, const jobs::Recipe& recipe);

/// Throws UserError unless the names of the run's parameters have their usual meaning, because it has a workload or a
/// recipe. `format`: the format that needs them.
void require_known_names(const report::RunView& run, const char* format);

}  // namespace krigtune::result
