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

/// The user's command, its placeholders parsed against the names of a session: what each trial is started with.
///
///   const JobCommand command(spec, space);
///   const JobCommand::Start start = command.start(configuration, {.dir = "/tmp/7", .trial = 7});
class JobCommand {
 public:
  /// Throws UserError at its key of `block` (or else of "/runner") for a placeholder, a flag or a key of a file that
  /// cannot be.
  JobCommand(const CommandSpec& spec, const space::Space& space, const JsonObject* block = nullptr);
  ~JobCommand();
  JobCommand(JobCommand&&) noexcept;

  struct Start {
    std::vector<std::string> argv;
    trial::Environment environment;
    std::vector<std::pair<std::string, std::string>> files;  ///< names in the trial's directory, and what they say
  };
  /// Throws UserError for a configuration that has no command: a value without words in "flags", an expression that is
  /// undefined there.
  Start start(const space::Configuration& configuration, const trial::TrialNames& trial) const;

  /// Whether the name stands in any of it.
  bool uses(const std::string& name) const;

  /// Throws UserError where a parameter of the space appears nowhere, so that every trial would measure the same.
  void refuse_unused_parameters() const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Throws UserError where no trial of the space could be what the session means: JobCommand's mistakes, and those of
/// the baseline and of some configurations of the space.
void check_job(const CommandSpec& spec, const space::Space& space, const std::optional<space::Configuration>& baseline,
               const JsonObject& block);

/// Writes the files of a start into `directory`, each whole or not at all.
void write_job_files(const JobCommand::Start& start, const std::filesystem::path& directory);

}  // namespace krigtune::runner
