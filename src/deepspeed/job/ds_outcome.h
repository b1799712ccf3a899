#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trial/outcome.h"
#include "trial/python_exception.h"

namespace krigtune::deepspeed {

// What a failed DeepSpeed job's words mean.

/// Of the launcher itself, or of the set-up of the process group (torch.distributed, DeepSpeed's init_distributed).
bool is_of_the_launcher(const trial::PythonException& cause);

/// NCCL could not connect the ranks: its own complaint before the first step.
bool is_of_the_network(const trial::PythonException& cause, std::int64_t steps);

/// The script opens its configuration by itself, and it was given as base64.
bool opens_base64(const trial::PythonException& cause);

/// DeepSpeed's refusal of its configuration: pydantic's, its own types, assertions and the like that it raises itself
/// before the first step (after one they are bugs); a Hugging Face Trainer's of contradicting values; JSON that is
/// none.
bool is_a_refusal(const trial::PythonException& cause, std::int64_t steps);

/// What was refused, in a line: pydantic's and the Trainer's reasons stand below the exception.
std::string refusal_text(const trial::PythonException& cause);

/// Host memory ran out, not a device's.
bool is_of_host_memory(const std::string& line);

/// The first line that a launcher, a shell, ssh, Python or argparse says of a job that it cannot start; "": there is
/// none.
std::string find_launcher_line(const std::string& text);

/// The port that was taken already.
std::optional<std::string> port_in_use(const std::string& line);

/// A rank's line without the launcher's label and blanks.
std::string without_label(const std::string& line);

/// What can become of a trial of a DeepSpeed job.
enum class DsClass { kSuccess, kTooShort, kOutOfMemory, kInvalid, kHang, kKilled, kLauncher, kCrash };
/// success, too short, out of memory, invalid configuration, hang, killed, launcher trouble, crash
const char* to_string(DsClass what);

/// What a trial of a DeepSpeed job left behind, once it was there at all.
struct DsEnd {
  int exit_code = 0;           ///< of the launcher, as shells say it: 128 + signal where one ended it
  bool timed_out = false;      ///< krigtune ended it for its time,
  bool hung = false;           ///< or for its silence
  double wall_s = 0.0;         ///< then: after so long
  std::int64_t steps = 0;      ///< optimizer steps that were timed, warm-up included
  std::int64_t steps_due = 1;  ///< and that a measurement takes
  std::string standard_output = {};
  std::string standard_error = {};
  /// Processes that the kernel's OOM killer has ended on this node meanwhile; empty: it does not say.
  std::optional<std::int64_t> oom_kills = std::nullopt;
};

struct DsVerdict {
  DsClass what = DsClass::kCrash;
  std::string sentence;            ///< one line: what happened and, where there is one, the fix
  std::optional<Bytes> requested;  ///< out of memory: the allocation that failed, where that was said
};

/// The first that holds (details and their sources: ds_outcome.cpp):
///   all steps due were timed, and the exit code is 0: success;
///   the exception that ended the first failing rank is for want of memory, of the launcher or the network's set-up, or
///   DeepSpeed's refusal of its configuration: out of memory, launcher trouble, invalid configuration;
///   all steps due were timed: success, whatever the exit code is (ranks may abort at exit);
///   memory ran out according to any line, or the kernel's OOM killer ended a rank: out of memory;
///   krigtune ended it for its time or silence: hang; exit code 0: too short;
///   SIGKILL from anybody else, also as launchers tell it (247, 137, "exitcode: -9"): killed;
///   the launcher's own complaints: launcher trouble; else crash.
/// A line that merely says "error" means nothing.
DsVerdict judge(const DsEnd& end);

/// The outcome of a trial that was not measured. `verdict`: of `end`, and no success.
trial::Outcome outcome_of(const DsVerdict& verdict, const DsEnd& end);

}  // namespace krigtune::deepspeed
