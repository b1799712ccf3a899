#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/pattern.h"
#include "runner/command.h"
#include "runner/command_result.h"
#include "trial/outcome.h"
#include "trial/process.h"

// Determines the outcome of a command trial.
namespace krigtune::runner {

/// What a command trial left behind.
struct CommandEnd {
  trial::ProcessResult process;
  std::optional<std::string> result = std::nullopt;      ///< contents of the file; empty if it could not be read
  std::string result_error = {};                         ///< the reason, if it could not be read
  std::optional<CommandResult> measured = std::nullopt;  ///< measurement of its output, instead of a result
  bool is_complete = false;                              ///< with `measured`: all required steps were read
  std::optional<double> bound = std::nullopt;            ///< set if it was ended early: the objective can be no better
  std::string standard_output = {};                      ///< its last part
  std::string standard_error = {};
  /// Processes that the kernel's OOM killer ended on this machine during the trial; empty if unknown.
  std::optional<std::int64_t> oom_kills = std::nullopt;
};

/// Returns the first outcome that applies:
/// - environment, if it did not start; interrupted, if krigtune was stopped; lost, if its place was lost;
/// - the result's status, if it is oom or failed;
/// - bounded, if krigtune ended it because it was certainly worse than the best, and it did not end well by itself;
/// - measured, if its output has all steps to be measured, whatever the exit code is;
/// - if krigtune ended it at its time limit or for silence: out of memory if its output says so (when one rank runs
/// out, the others wait for it forever), otherwise timeout or hang;
/// - measured, for exit code 0 and a valid result;
/// - out of memory, for an exit code in `spec.oom_exit_codes`, a SIGKILL by the OOM killer, the place's report, or
/// output that says so;
/// - bad_result for exit code 0;
/// - environment, if its output says that shared memory or a disk is full; hang, if it says that a collective did not
/// end in time, and no rank raised anything else; otherwise crash.
///
/// A SIGKILL that krigtune did not send (also reported as exit code 137 = 128 + 9 by shells and 247 = -9 by DeepSpeed's
/// launcher, or in a launcher's words) is attributed to the OOM killer if its count in /proc/vmstat has risen or the
/// kernel does not count. `patterns`: those of the spec.
trial::Outcome command_outcome(const CommandEnd& end, const CommandJob& job, const std::vector<Pattern>& patterns);

}  // namespace krigtune::runner
