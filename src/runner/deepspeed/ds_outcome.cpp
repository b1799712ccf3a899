// What became of a trial of a DeepSpeed job. Exit codes do not tell it: launchers turn every exception into 1, a killed
// rank is 247 by `deepspeed`, 1 by torchrun and 137 by a shell, and a rank that aborts after its last step spoils the
// exit code of a good measurement. So what was timed counts most, then the exception that ended the first failing rank,
// then single lines. All of it is pinned to outputs recorded from real jobs: tests/runner/deepspeed_outputs.
#include "krigtune/runner/deepspeed/ds_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "deepspeed/failure_kind.h"
#include "failure_text.h"
#include "oom_text.h"

namespace krigtune {
namespace {

constexpr int kSignalBase = 128;                 // what shells add to a signal's number
constexpr int kDeepSpeedKilled = 256 - SIGKILL;  // deepspeed's launcher says sys.exit(-9)

constexpr const char* kOpensBase64 =
    "the script opens its configuration itself and cannot read base64: let the runner's \"config_as\" be \"path\"";

constexpr std::array<std::pair<DsClass, const char*>, 8> kNames = {{
    {DsClass::kSuccess, "success"},
    {DsClass::kTooShort, "too short"},
    {DsClass::kOutOfMemory, "out of memory"},
    {DsClass::kInvalid, "invalid configuration"},
    {DsClass::kHang, "hang"},
    {DsClass::kKilled, "killed"},
    {DsClass::kLauncher, "launcher trouble"},
    {DsClass::kCrash, "crash"},
}};

std::string without_break(const std::string& line) {
  constexpr std::size_t kLongest = 300;
  const std::string shown = printable(line.substr(0, kLongest));
  return line.size() > kLongest ? shown + " ..." : shown;
}

class Judge {
 public:
  explicit Judge(const DsEnd& end) : end_(end), cause_(cause_of_failure(end.standard_error)) {
    if (!cause_) cause_ = cause_of_failure(end.standard_output);
  }

  DsVerdict verdict() const {
    const bool complete = end_.steps >= end_.steps_due;
    if (complete && end_.exit_code == 0) return {DsClass::kSuccess, measured_text(), std::nullopt};
    if (const auto by_exception = by_cause()) return *by_exception;
    if (complete) return {DsClass::kSuccess, measured_text(), std::nullopt};
    if (const auto complaint = memory_words()) return out_of_memory(complaint->line, complaint->requested);
    if (end_.timed_out || end_.hung) return {DsClass::kHang, hang_text(), std::nullopt};
    if (was_killed() && end_.oom_kills.value_or(0) > 0) {
      return out_of_memory("the kernel's OOM killer ended a rank", std::nullopt);
    }
    if (end_.exit_code == 0) return {DsClass::kTooShort, short_text(), std::nullopt};
    if (was_killed()) return {DsClass::kKilled, killed_text(), std::nullopt};
    if (const std::string line = launcher_line(); !line.empty()) return launcher(line);
    return {DsClass::kCrash, crash_text(), std::nullopt};
  }

 private:
  std::optional<DsVerdict> by_cause() const {
    if (!cause_) return std::nullopt;
    if (const auto complaint = find_memory_words(cause_->line())) {
      return out_of_memory(cause_->line(), complaint->requested);
    }
    if (is_of_the_launcher(*cause_)) return launcher(cause_->line());
    if (is_of_the_network(*cause_, end_.steps)) {
      const std::string text = "the ranks did not find one another: " + without_break(cause_->line());
      return DsVerdict{DsClass::kLauncher, text, std::nullopt};
    }
    if (opens_base64(*cause_)) return DsVerdict{DsClass::kInvalid, kOpensBase64, std::nullopt};
    if (!is_a_refusal(*cause_, end_.steps)) return std::nullopt;
    const std::string text = "DeepSpeed refuses the configuration: " + without_break(refusal_text(*cause_));
    return DsVerdict{DsClass::kInvalid, text, std::nullopt};
  }

  std::optional<MemoryComplaint> memory_words() const {
    auto complaint = find_memory_words(end_.standard_error);
    if (!complaint) complaint = find_memory_words(end_.standard_output);
    return complaint;
  }

  std::string launcher_line() const {
    if (end_.steps > 0) return "";
    std::string line = find_launcher_line(end_.standard_error);
    if (!line.empty()) return line;
    std::string said = find_launcher_line(end_.standard_output);
    constexpr int kCannotExecute = 126, kNotFound = 127;  // of POSIX shells
    if (!said.empty() || (end_.exit_code != kCannotExecute && end_.exit_code != kNotFound)) return said;
    return fmt::format("exit code {}: a program of the command cannot be run", end_.exit_code);
  }

  bool was_killed() const {
    return end_.exit_code == kSignalBase + SIGKILL || end_.exit_code == kDeepSpeedKilled ||
           tells_of_a_kill(end_.standard_error) || tells_of_a_kill(end_.standard_output);
  }

  static DsVerdict out_of_memory(const std::string& line, std::optional<Bytes> requested) {
    return {DsClass::kOutOfMemory,
            fmt::format("out of memory on the {}: {}", is_of_host_memory(line) ? "host" : "device",
                        without_break(without_label(line))),
            requested};
  }

  static DsVerdict launcher(const std::string& line) {
    const std::optional<std::string> port = port_in_use(line);
    const std::string what =
        port ? fmt::format("port {} is in use: give another one (--master_port), or end what holds it", *port)
             : without_break(without_label(line));
    return {DsClass::kLauncher, "the launcher did not start the job: " + what, std::nullopt};
  }

  std::string progress() const { return fmt::format("{} of {} steps", end_.steps, end_.steps_due); }

  std::string measured_text() const {
    std::string text = fmt::format("all {} steps were timed", end_.steps_due);
    if (end_.exit_code == 0) return text;
    return fmt::format("{}; what came after them ({}) does not count", text, ending());
  }

  std::string short_text() const {
    if (end_.steps > 0) {
      return fmt::format(
          "the script ended by itself after {}: let it train longer, or measure fewer (warmup_steps, "
          "measure_steps)",
          progress());
    }
    return "the command ended well, but no step was timed: the script gives DeepSpeed another configuration, trains "
           "with a pipeline engine (which is not timed), or its first rank does not see the trial's directory";
  }

  std::string hang_text() const {
    return end_.hung
               ? fmt::format("ended after {:.1f} s, because its output no longer grew ({})", end_.wall_s, progress())
               : fmt::format("ended at its time limit, after {:.1f} s ({})", end_.wall_s, progress());
  }

  std::string killed_text() const {
    return fmt::format("a rank was killed (SIGKILL) after {}, neither by krigtune nor{} by the kernel's OOM killer",
                       progress(), end_.oom_kills ? "" : ", as far as is known,");
  }

  std::string ending() const {
    const int signal = end_.exit_code - kSignalBase;
    const bool by_signal = signal > 0 && signal < NSIG;
    return by_signal ? fmt::format("signal {}, {}", signal, ::strsignal(signal))
                     : fmt::format("exit code {}", end_.exit_code);
  }

  std::string crash_text() const {
    const std::string after = end_.steps > 0 ? " after " + progress() : "";
    return fmt::format("it ended{} ({}){}", after, ending(), cause_ ? ": " + without_break(cause_->line()) : "");
  }

  const DsEnd& end_;
  std::optional<PythonException> cause_;
};

FailureReason reason_of(DsClass what, const DsEnd& end) {
  switch (what) {
    case DsClass::kSuccess:
    case DsClass::kTooShort:
      return FailureReason::kBadResult;
    case DsClass::kInvalid:
      return FailureReason::kInvalid;
    case DsClass::kHang:
      return end.hung ? FailureReason::kHang : FailureReason::kTimeout;
    case DsClass::kLauncher:
      return FailureReason::kEnvironment;
    case DsClass::kOutOfMemory:
    case DsClass::kKilled:
    case DsClass::kCrash:
      break;
  }
  return FailureReason::kCrash;
}

}  // namespace

const char* to_string(DsClass what) {
  for (const auto& [value, name] : kNames) {
    if (value == what) return name;
  }
  return "crash";
}

DsVerdict judge(const DsEnd& end) { return Judge(end).verdict(); }

Outcome outcome_of(const DsVerdict& verdict, const DsEnd& end) {
  if (verdict.what == DsClass::kOutOfMemory) return OutOfMemory{verdict.requested, false};
  // The sentence of any other class says more than what ranks and launchers print last.
  const bool unknown = verdict.what == DsClass::kCrash;
  const std::string said = unknown ? failure_text(end.standard_output, end.standard_error) : "";
  return Failed{reason_of(verdict.what, end), end.exit_code, verdict.sentence + (said.empty() ? "" : "\n" + said)};
}

}  // namespace krigtune
