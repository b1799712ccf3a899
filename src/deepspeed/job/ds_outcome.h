#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trial/outcome.h"
#include "trial/python_exception.h"

namespace krigtune::deepspeed {

// Interpretation of the output of a failed DeepSpeed job.

/// Returns whether the exception comes from the launcher, or from the set-up of the process group (torch.distributed,
/// DeepSpeed's init_distributed).
bool is_of_the_launcher(const trial::PythonException& cause);

/// Returns whether NCCL could not connect the ranks: its own error before the first step.
bool is_of_the_network(const trial::PythonException& cause, std::int64_t steps);

/// Returns whether the script opened its configuration itself although it was given as base64.
bool opens_base64(const trial::PythonException& cause);

/// Returns whether DeepSpeed refused its configuration: exceptions of pydantic, of DeepSpeed's own types, assertions
/// and similar ones that it raises before the first step (later ones are bugs); contradictory values in a Hugging Face
/// Trainer; invalid JSON.
bool is_a_refusal(const trial::PythonException& cause, std::int64_t steps);

/// Returns what was refused, in one line; the reasons of pydantic and the Trainer follow the exception.
std::string refusal_text(const trial::PythonException& cause);

/// Returns whether host memory ran out rather than a device's.
bool is_of_host_memory(const std::string& line);

/// Returns the first line in which a launcher, a shell, ssh, Python or argparse says that it cannot start a job; "" if
/// none.
std::string find_launcher_line(const std::string& text);

/// Returns the port that was already in use.
std::optional<std::string> port_in_use(const std::string& line);

/// Returns a rank's line without the launcher's label and without blanks.
std::string without_label(const std::string& line);

/// The classes of results of a DeepSpeed trial.
enum class DsClass { kSuccess, kTooShort, kOutOfMemory, kInvalid, kHang, kKilled, kLauncher, kShortage, kCrash };
/// success, too short, out of memory, invalid configuration, hang, killed, launcher trouble, shortage (of shared memory
/// or of room on a disk), crash
const char* to_string(DsClass what);

/// What a trial of a DeepSpeed job left behind, if it was started at all.
struct DsEnd {
  int exit_code = 0;           ///< exit code of the launcher as in shells: 128 + signal if a signal ended it
  bool timed_out = false;      ///< krigtune ended it at its time limit
  bool hung = false;           ///< krigtune ended it because it was silent
  double wall_s = 0.0;         ///< seconds until then
  std::int64_t steps = 0;      ///< timed optimizer steps, including warm-up
  std::int64_t steps_due = 1;  ///< steps that a measurement needs
  std::string standard_output = {};
  std::string standard_error = {};
  std::vector<std::string> argv = {};           ///< what was started
  std::vector<std::string> users_command = {};  ///< what the user typed
  /// Processes that the kernel's OOM killer ended on this node during the trial; empty if unknown.
  std::optional<std::int64_t> oom_kills = std::nullopt;
};

struct DsVerdict {
  DsClass what = DsClass::kCrash;
  std::string sentence;            ///< one line: what happened and, if possible, the fix
  std::optional<Bytes> requested;  ///< out of memory: size of the failed allocation, if stated
};

/// Returns the first class that applies (details and their sources: ds_outcome.cpp):
/// - success, if all due steps were timed and the exit code is 0;
/// - out of memory, launcher trouble or invalid configuration, by the exception that ended the first failing rank: lack
/// of memory, set-up of launcher or network, or DeepSpeed's refusal of its configuration;
/// - success, if all due steps were timed, whatever the exit code is (ranks may abort at exit);
/// - out of memory, if any line says so, or if the kernel's OOM killer ended a rank;
/// - hang, if krigtune ended it at its time limit or for silence; too short, if the exit code is 0;
/// - killed, if anybody else sent SIGKILL, also as launchers report it (247, 137, "exitcode: -9");
/// - shortage, if shared memory or a disk is full;
/// - hang, if the process group's own time limit ended a collective, and no rank raised anything else;
/// - launcher trouble, if the launcher complains, or the script about a flag that krigtune added; otherwise crash.
///
/// Lack of memory anywhere in the output, and a collective that ended too late, count more than an exception of
/// launcher or network: a rank that has no memory left cannot be reached.
///
/// A line that merely contains "error" is ignored.
DsVerdict judge(const DsEnd& end);

/// Returns the outcome of a trial that was not measured. `verdict` is that of `end`, and not a success.
trial::Outcome outcome_of(const DsVerdict& verdict, const DsEnd& end);

}  // namespace krigtune::deepspeed
