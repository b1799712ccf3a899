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
                 const trial::ProcessSpec& process, const Clock& clock);

  /// Ends the process if enough was read, if it has lost against the rival, or if something is wrong. With
  /// `may_give_up`, also if the objective is certain enough never to come. Everything that is read counts as a sign of
  /// life.
  void watch(trial::ProcessSpec& process, const std::optional<trial::Rival>& rival, bool may_give_up);
  /// Returns whether what the objective is, or follows from, was found in the output.
  bool has_matched() const { return !reader_.measurement().vain_search(job_.metric).has_value(); }

  /// Call after the process has ended: reads the rest and writes measured.json.
  void finish(CommandEnd& end);

 private:
  bool is_enough(const std::optional<trial::Rival>& rival);
  bool is_complete() const;
  bool is_in_vain();
  CommandResult result() const;
  std::string why_nothing() const;
  void write_summary(const CommandResult& result) const;

  const CommandJob& job_;
  trial::TrialFiles files_;
  trial::MeasureReader reader_;
  const Clock& clock_;
  std::optional<double> bound_;
  std::optional<double> alike_since_s_;  ///< when the first line came that resembles what is looked for
  std::optional<double> steps_since_s_;  ///< ... that reports a step
  bool in_vain_ = false;                 ///< ended for that reason
};

}  // namespace krigtune::runner
