#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "krigtune/runner/outcome.h"

namespace krigtune {

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
  std::string sentence;            ///< one line: what happened and, where there is one, the mend
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
Outcome outcome_of(const DsVerdict& verdict, const DsEnd& end);

}  // namespace krigtune
