#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jobs/recipe/recipe_job.h"

// The command of a trial, and the command that trains.
namespace krigtune::jobs {

/// Parameters that are varied where nobody says otherwise: those with values to try that this command can be told, and
/// whose value it has now is known.
std::vector<std::string> varied_by_default(const Recipe& recipe, const RecipeJob& job);

/// The session's "space": the values that the recipe tries, with the command's own among them, in the recipe's order.
/// Throws UserError for a parameter that the recipe does not know or this command cannot be told (with the reason), and
/// one without values to try, known neither to the recipe nor well known.
Json space_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);
/// The session's "fixed": what the command says of parameters that are not varied, and what the framework always does.
/// gradient_accumulation_steps is left out where it follows from the batch.
Json fixed_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);
/// The session's "constraints": those of the recipe whose parameters are all varied or fixed.
Json constraints_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);

struct RunnerBlock {
  Json block;                        ///< the session's "runner" of kind command
  std::vector<std::string> remarks;  ///< sentences: what trials run without, and with
};

/// How trials are run: the command with placeholders in place of what is varied, without what saves and evaluates, and
/// with what stops it; the environment; files with keys to set; measurements and checks. No other word changes, and
/// braces in the user's words are escaped. The values of parameters that are not varied stay the command's.
/// gradient_accumulation_steps is written where the job has a place for it and micro-batch or a parallelism varies: a
/// session without a workload, which has no batch identity, lets it vary too. Checks of the batch compare with the
/// command's own, and are left out where it varies.
RunnerBlock runner_block(const Recipe& recipe, const RecipeJob& job, const std::vector<std::string>& varied);

/// The user's command with a configuration: nothing is removed, and nothing added but what the values need.
struct OptimalCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  ///< beyond the command's own surroundings
  /// File as the command names it -> key -> value: a copy of the file with these is to stand beside it. `argv` names
  /// the copy as {dir}/NAME, NAME being the file's own name.
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> set;
};
OptimalCommand optimal_command(const Recipe& recipe, const RecipeJob& job, const space::Configuration& configuration);
/// The words alone.
std::vector<std::string> optimal_words(const Recipe& recipe, const RecipeJob& job,
                                       const space::Configuration& configuration);

}  // namespace krigtune::jobs
