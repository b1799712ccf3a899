#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "session/session.h"
#include "space/configuration.h"
#include "trial/program.h"

namespace krigtune::jobs {

/// The user's command with a configuration in it. With a recipe it trains: nothing of what trials are run without is
/// missing, and nothing that ends them is in it. Without one it is what a trial runs.
struct TrainingCommand {
  std::vector<std::string> argv;
  trial::Environment environment;                          ///< added to ours
  std::vector<std::pair<std::string, std::string>> files;  ///< names in `directory`, and what they say
};

/// Where the command and its files are to be.
struct TrainingPlace {
  std::filesystem::path directory;  ///< absolute
  std::filesystem::path config;     ///< of the configuration as JSON, and of the result, for commands that name them
  std::filesystem::path result;
  int trial = 0;
};

/// Of a session whose runner is a command. Throws UserError for a configuration that has no command, and where the
/// recipe or a file that it changes is gone.
TrainingCommand training_command(const session::Session& session, const space::Configuration& configuration,
                                 const TrainingPlace& place);

/// What it is compared with: the user's own words. Without a recipe training_command() of `baseline`; with one the
/// files are those that the command of `best` changes, as they are.
TrainingCommand own_command(const session::Session& session, const space::Configuration& baseline,
                            const space::Configuration& best, const TrainingPlace& place);

}  // namespace krigtune::jobs
