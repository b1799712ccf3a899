#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "session/session.h"
#include "space/configuration.h"
#include "trial/program.h"

namespace krigtune::jobs {

/// The user's command with a configuration. With a recipe it trains: it has everything that trials omit, and nothing
/// that ends a trial early. Without a recipe it is the command of a trial.
struct TrainingCommand {
  std::vector<std::string> argv;
  trial::Environment environment;                          ///< added to ours
  std::vector<std::pair<std::string, std::string>> files;  ///< names in `directory` and their contents
};

/// Where the command and its files are placed.
struct TrainingPlace {
  std::filesystem::path directory;  ///< absolute
  /// Path of the configuration as JSON, for commands that name it; `result` is the path of the result.
  std::filesystem::path config;
  std::filesystem::path result;
  int trial = 0;
};

/// Requires a session whose runner is a command. Throws UserError for a configuration without a command, and if the
/// recipe or a file that it changes no longer exists.
TrainingCommand training_command(const session::Session& session, const space::Configuration& configuration,
                                 const TrainingPlace& place);

/// Returns the command to compare with: the user's own words. Without a recipe this is training_command() of
/// `baseline`; with one, the files are those that the command of `best` changes, unchanged.
TrainingCommand own_command(const session::Session& session, const space::Configuration& baseline,
                            const space::Configuration& best, const TrainingPlace& place);

}  // namespace krigtune::jobs
