#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "space/space.h"
#include "trial/placeholders.h"
#include "trial/program.h"

namespace krigtune::runner {

struct CommandSpec;

/// The user's command, with placeholders parsed against the names of a session. Every trial is started with it.
///
///   const JobCommand command(spec, space);
///   const JobCommand::Start start = command.start(configuration, {.dir = "/tmp/7", .trial = 7});
class JobCommand {
 public:
  /// Throws UserError at the key of `block` (or else of "/runner") for an invalid placeholder, flag or key of a file.
  JobCommand(const CommandSpec& spec, const space::Space& space, const JsonObject* block = nullptr);
  ~JobCommand();
  JobCommand(JobCommand&&) noexcept;

  struct Start {
    std::vector<std::string> argv;
    trial::Environment environment;
    std::vector<std::pair<std::string, std::string>> files;  ///< names in the trial's directory and their contents
  };
  /// Throws UserError for a configuration without a command: a value without words in "flags", or an undefined
  /// expression.
  Start start(const space::Configuration& configuration, const trial::TrialNames& trial) const;

  /// Returns whether the command, environment or files use the name.
  bool uses(const std::string& name) const;

  /// Throws UserError if a parameter of the space is not used, because every trial would measure the same.
  void refuse_unused_parameters() const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Throws UserError if no trial of the space can do what the session means: checks everything that JobCommand checks,
/// for the baseline and some configurations of the space.
void check_job(const CommandSpec& spec, const space::Space& space, const std::optional<space::Configuration>& baseline,
               const JsonObject& block);

/// Writes the files of a start into `directory`, each completely or not at all.
void write_job_files(const JobCommand::Start& start, const std::filesystem::path& directory);

}  // namespace krigtune::runner
