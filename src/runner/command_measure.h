#pragma once
#include <optional>
#include <string>

#include "runner/command.h"
#include "runner/command_outcome.h"
#include "trial/measure_reader.h"
#include "trial/process.h"
#include "trial/trial_files.h"

// A command trial whose output is the measurement: the session's "measure".
namespace krigtune::runner {

/// What the job is, for measurements: sequences of a step and tokens of a sequence, where they are known.
trial::MeasureFacts measure_facts(const space::JobFacts& facts, const space::Configuration& configuration);

/// The spec with placeholders filled in, in paths and in what checks must equal.
trial::MeasureSpec filled_in(const trial::MeasureSpec& spec, const space::Space& space,
                             const space::Configuration& configuration, const trial::TrialFiles& files);

/// Throws UserError at the key of `block` whose placeholders are none.
void refuse_wrong_placeholders(const trial::MeasureSpec& spec, const space::Space& space, const JsonObject& block);

/// Throws UserError where the objective neither is measured nor follows from what is.
void refuse_unmeasured(const CommandJob& job);

/// Reads along while the trial runs. What it was made with must outlive it.
class CommandMeasure {
 public:
  CommandMeasure(const CommandJob& job, const space::Configuration& configuration, const trial::TrialFiles& files,
                 const trial::ProcessSpec& process);

  /// Ends the process once enough is read, or it has lost against the rival, or something is wrong; what is read is a
  /// sign of life.
  void watch(trial::ProcessSpec& process, const std::optional<trial::Rival>& rival);

  /// Once the process has ended: the rest is read, measured.json written.
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
