#pragma once
#include <optional>
#include <string>

#include "runner/command.h"
#include "runner/command_outcome.h"
#include "trial/measure_reader.h"
#include "trial/process.h"
#include "trial/trial_files.h"

// A command trial that is measured by its output: the session's "measure".
namespace krigtune::runner {

/// Returns the facts that measurements need: sequences per step and tokens per sequence, if known.
trial::MeasureFacts measure_facts(const space::JobFacts& facts, const space::Configuration& configuration);

/// Fills in the placeholders of the spec, in paths and in the expected values of checks.
trial::MeasureSpec filled_in(const trial::MeasureSpec& spec, const space::Space& space,
                             const space::Configuration& configuration, const trial::TrialFiles& files);

/// Throws UserError at the key of `block` that has invalid placeholders.
void refuse_wrong_placeholders(const trial::MeasureSpec& spec, const space::Space& space, const JsonObject& block);

/// Throws UserError if the objective is neither measured nor follows from the measurements.
void refuse_unmeasured(const CommandJob& job);

/// Measures while the trial runs. The constructor's arguments must outlive it.
class CommandMeasure {
 public:
  CommandMeasure(const CommandJob& job, const space::Configuration& configuration, const trial::TrialFiles& files,
                 const trial::ProcessSpec& process);

  /// Ends the process if enough was read, if it has lost against the rival, or if something is wrong. Everything that
  /// is read counts as a sign of life.
  void watch(trial::ProcessSpec& process, const std::optional<trial::Rival>& rival);

  /// Call after the process has ended: reads the rest and writes measured.json.
  void finish(CommandEnd& end);

 private:
  bool is_enough(const std::optional<trial::Rival>& rival);
  bool is_complete() const;
  CommandResult result() const;
  void write_summary(const CommandResult& result) const;

  const CommandJob& job_;
  trial::TrialFiles files_;
  trial::MeasureReader reader_;
  std::optional<double> bound_;
};

}  // namespace krigtune::runner
