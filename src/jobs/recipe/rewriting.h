#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jobs/recipe/recipe_job.h"

// The command of a trial, and the command that trains.
namespace krigtune::jobs {

/// Returns the parameters that vary by default: those with values to try that this command accepts, and whose present
/// value is known.
std::vector<std::string> varied_by_default(const Recipe& recipe, const RecipeJob& job);

/// Returns the session's "space": the recipe's values and the command's own, in the recipe's order. Throws UserError
/// for a parameter that the recipe does not know or this command cannot take (with the reason), and for one without
/// values to try that is not well-known.
Json space_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);
/// Returns the session's "fixed": the command's values of parameters that do not vary, and the values that the
/// framework always has. gradient_accumulation_steps is left out if it follows from the batch.
Json fixed_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);
/// Returns the session's "constraints": those of the recipe whose parameters are all varied or fixed.
Json constraints_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);

struct RunnerBlock {
  Json block;                        ///< the session's "runner" of kind command
  std::vector<std::string> remarks;  ///< sentences: what trials omit and add
};

/// Returns how trials are run: the command with placeholders for the varied values, without words that save and
/// evaluate, and with words that stop it; the environment; files with keys to set; measurements and checks. Other words
/// do not change, and braces in the user's words are escaped. Parameters that do not vary keep the command's values.
/// gradient_accumulation_steps is written if the job has a place for it and micro-batch or a parallelism varies; a
/// session without a workload has no batch identity, so it varies there too. Checks compare the batch with the
/// command's own and are left out if it varies.
RunnerBlock runner_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);

/// The user's command with a configuration: nothing is removed, and only what the values require is added.
struct OptimalCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  ///< in addition to the command's surroundings
  /// File as named in the command -> key -> value. A copy of the file with these values must be placed beside the
  /// command; `argv` names the copy as {dir}/NAME, where NAME is the file's own name.
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> set;
};
OptimalCommand optimal_command(const Recipe& recipe, const RecipeJob& job, const space::Configuration& configuration);
/// Returns only the words.
std::vector<std::string> optimal_words(const Recipe& recipe, const RecipeJob& job,
                                       const space::Configuration& configuration);

}  // namespace krigtune::jobs
