#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "trial/process.h"
#include "trial/race.h"
#include "trial/runner.h"

namespace krigtune::runner {

/// A program of the user's, one process a trial.
struct CommandSpec {
  static trial::RunnerEntry<CommandSpec> entry();

  std::vector<std::string> argv;            ///< with {config}, {result}, {dir}, {trial}; never a shell
  std::filesystem::path working_directory;  ///< absolute
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
  double timeout_s = 3600.0;
  double grace_s = 10.0;                  ///< between SIGTERM and SIGKILL
  std::optional<double> no_progress_s;    ///< ended as a hang when its output has not grown for so long
  std::vector<int> oom_exit_codes;        ///< beyond what the result says
  std::vector<std::string> oom_patterns;  ///< regular expressions (ECMAScript) over its output, added to the built-in
};

/// What a command trial needs besides the configuration. Copied.
struct CommandJob {
  CommandSpec spec;
  std::string metric;                       ///< the objective's name: the key of the result that is its value
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted; must outlive it
};

/// Starts the user's program per trial, in a process group of its own: {config} is a JSON file of the configuration,
/// {result} the JSON file that the program writes, {dir} the trial's directory, {trial} the number that the directory's
/// name begins with. A program may append lines {"throughput": 11.9, "value_sem": 0.2, "steps": 8} to
/// {result}.progress, its objective so far with its standard error: then it is ended (SIGTERM) once it is surely worse
/// than the best. Out of memory is told by the result's status, exit code, signal or output. `clock` must outlive it.
std::unique_ptr<trial::Runner> make_command_runner(CommandJob job, const Clock& clock);

/// A result as the program writes it: {"throughput": 12.3, "peak_memory_bytes": 1.2e10, "status": "ok"}; "value_sem",
/// "reason" and any number of further metrics are welcome. Anything else (no JSON, no such metric, NaN, a value that is
/// not positive where the metric is a known one) is Failed with reason bad_result and what is wrong.
trial::Outcome read_command_result(const std::string& text, const std::string& metric);

/// A result file, read.
struct CommandResult {
  trial::Outcome outcome;
  bool names_failure = false;  ///< its status is oom or failed: that counts more than exit codes and output
};
CommandResult interpret_result(const std::string& text, const std::string& metric);

/// What a command trial left behind.
struct CommandEnd {
  trial::ProcessResult process;
  std::optional<std::string> result = std::nullopt;  ///< the file's text; empty: there is none that could be read
  std::string result_error = {};                     ///< then: why
  std::optional<double> bound = std::nullopt;        ///< ended early: the objective can be no better
  std::string standard_output = {};                  ///< the last of it
  std::string standard_error = {};
  /// Processes that the kernel's OOM killer has ended on this machine meanwhile; empty: it does not say.
  std::optional<std::int64_t> oom_kills = std::nullopt;
};

/// What became of the trial. The first that holds:
///   it did not start: environment; krigtune was stopped: interrupted;
///   the result's status is oom or failed: that;
///   krigtune ended it because it was surely worse than the best, before its own end: bounded;
///   krigtune ended it for its time or its silence: out of memory where its output says so (when one rank runs out, the
///   others wait for it for ever), else timeout or hang;
///   exit code 0 and a good result: measured;
///   an exit code of `spec.oom_exit_codes`, a SIGKILL of the OOM killer's, or an output that says so: out of memory;
///   exit code 0: bad_result; any other: crash.
/// A SIGKILL that krigtune did not send (seen as the exit codes 137 = 128 + 9 of shells and 247 = -9 of DeepSpeed's
/// launcher, too) is the OOM killer's where its count in /proc/vmstat has risen or the kernel keeps none.
/// `patterns`: those of the spec.
trial::Outcome command_outcome(const CommandEnd& end, const CommandJob& job, const std::vector<std::regex>& patterns);

}  // namespace krigtune::runner
