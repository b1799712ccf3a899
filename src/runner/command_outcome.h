#pragma once
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "runner/command.h"
#include "runner/command_result.h"
#include "trial/outcome.h"
#include "trial/process.h"

// What became of a command trial.
namespace krigtune::runner {

/// What a command trial left behind.
struct CommandEnd {
  trial::ProcessResult process;
  std::optional<std::string> result = std::nullopt;      ///< the file's text; empty: there is none that could be read
  std::string result_error = {};                         ///< then: why
  std::optional<CommandResult> measured = std::nullopt;  ///< from its output, in place of a result
  bool is_complete = false;                              ///< then: all steps that were wanted are read
  std::optional<double> bound = std::nullopt;            ///< ended early: the objective can be no better
  std::string standard_output = {};                      ///< the last of it
  std::string standard_error = {};
  /// Processes that the kernel's OOM killer has ended on this machine meanwhile; empty: it does not say.
  std::optional<std::int64_t> oom_kills = std::nullopt;
};

/// What became of the trial. The first that holds:
///   it did not start: environment; krigtune was stopped: interrupted; its place was lost: lost;
///   the result's status is oom or failed: that;
///   krigtune ended it because it was surely worse than the best, before its own end: bounded;
///   all steps that were to be measured are in its output: measured, whatever the exit code;
///   krigtune ended it for its time or its silence: out of memory where its output says so (when one rank runs out, the
///   others wait for it for ever), else timeout or hang;
///   exit code 0 and a good result: measured;
///   an exit code of `spec.oom_exit_codes`, a SIGKILL of the OOM killer's, the place's word, or an output that says so:
///   out of memory; exit code 0: bad_result; any other: crash.
/// A SIGKILL that krigtune did not send (seen as the exit codes 137 = 128 + 9 of shells and 247 = -9 of DeepSpeed's
/// launcher, too) is the OOM killer's where its count in /proc/vmstat has risen or the kernel keeps none.
/// `patterns`: those of the spec.
trial::Outcome command_outcome(const CommandEnd& end, const CommandJob& job, const std::vector<std::regex>& patterns);

}  // namespace krigtune::runner
