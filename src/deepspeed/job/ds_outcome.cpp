// Determines the outcome of a trial of a DeepSpeed job. Exit codes are not enough: launchers turn every exception into
// 1, a killed rank gives 247 with `deepspeed`, 1 with torchrun and 137 with a shell, and a rank that aborts after its
// last step spoils the exit code of a good measurement. So timed steps count most, then the exception that ended the
// first failing rank, then single lines. Tests compare all of this with outputs recorded from real jobs:
// tests/runner/deepspeed_outputs.
#include "deepspeed/job/ds_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/text.h"
#include "trial/failure_text.h"

namespace krigtune::deepspeed {
namespace {

template <class Words>
bool contains_any(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::string without_bullet(const std::string& line) {
  return line.substr(std::min(line.find_first_not_of(" -"), line.size()));
}

std::string between(const std::string& text, std::string_view before, std::string_view after) {
  const std::size_t found = text.find(before);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + before.size();
  return text.substr(begin, std::min(text.find(after, begin), text.size()) - begin);
}

bool was_raised_in(const trial::PythonException& cause, const std::string& part) {
  return !cause.files.empty() && cause.files.back().find(part) != std::string::npos;
}

}  // namespace

bool is_of_the_network(const trial::PythonException& cause, std::int64_t steps) {
  // Raised by torch.distributed, ProcessGroupNCCL; before torch 2.1 it was a RuntimeError with the same words. After
  // the first step it may have any cause.
  constexpr std::array<std::string_view, 3> kWords = {"NCCL error in", "ncclSystemError", "ncclInvalidUsage"};
  return steps == 0 && contains_any(cause.message, kWords);
}

bool is_of_the_launcher(const trial::PythonException& cause) {
  // Raised by torch.distributed: TCPStore, rendezvous. Before 2.1 it was a RuntimeError that names the address.
  constexpr std::array<std::string_view, 5> kTypes = {"DistNetworkError", "DistStoreError", "RendezvousConnectionError",
                                                      "RendezvousTimeoutError", "RendezvousClosedError"};
  constexpr std::array<std::string_view, 3> kWords = {"EADDRINUSE", "ddress already in use",
                                                      "Name or service not known"};
  return is_one_of(cause.type, kTypes) || contains_any(cause.message, kWords) ||
         was_raised_in(cause, "/deepspeed/launcher/");
}

bool opens_base64(const trial::PythonException& cause) {
  return cause.type == "OSError" &&
         contains_any(cause.message, std::array<std::string_view, 1>{"File name too long: 'ey"});
}

bool is_a_refusal(const trial::PythonException& cause, std::int64_t steps) {
  constexpr std::array<std::string_view, 3> kOwnTypes = {"ValidationError", "DeepSpeedConfigError",
                                                         "ZeRORuntimeException"};
  constexpr std::array<std::string_view, 3> kWords = {
      "Check batch related parameters",          // deepspeed/runtime/config.py
      "zero_allow_untested_optimizer",           // deepspeed/runtime/engine.py
      "DeepSpeed config values that mismatch"};  // transformers, HfTrainerDeepSpeedConfig
  if (is_one_of(cause.type, kOwnTypes) || contains_any(cause.message, kWords)) return true;
  // The directory for its metrics, which it writes after the last step, is missing (print_json_dist).
  if (cause.type == "FileNotFoundError" && was_raised_in(cause, "/deepspeed/utils/logging.py")) return true;
  constexpr std::array<std::string_view, 2> kNoJson = {"JSONDecodeError", "HjsonDecodeError"};
  constexpr std::array<std::string_view, 5> kRaised = {"AssertionError", "ValueError", "NotImplementedError",
                                                       "TypeError", "KeyError"};
  if (steps > 0) return false;
  return is_one_of(cause.type, kNoJson) || (is_one_of(cause.type, kRaised) && was_raised_in(cause, "/deepspeed/"));
}

// pydantic 2: "stage", "  Input should be 0, 1, 2, 3 or 3 [type=enum, input_value=5, input_type=int]";
// pydantic 1: "stage", "  value is not a valid integer (type=type_error.integer)".
std::string refusal_text(const trial::PythonException& cause) {
  if (cause.type == "ValidationError" && cause.more.size() >= 2) {
    const std::string& what = cause.more[1];
    const std::size_t details = std::min(what.find(" [type="), what.find(" (type="));
    const std::string value = between(what, "input_value=", ", input_type");
    return without_bullet(cause.more[0]) + ": " + without_bullet(what.substr(0, details)) +
           (value.empty() ? "" : " (it is " + value + ")");
  }
  const bool goes_on = !cause.message.empty() && cause.message.back() == ':' && !cause.more.empty();
  return cause.line() + (goes_on ? " " + without_bullet(cause.more[0]) : "");
}

bool is_of_host_memory(const std::string& line) {
  constexpr std::array<std::string_view, 5> kDevice = {"OutOfMemoryError", "CUDA", "HIP", "XPU", "NPU"};
  constexpr std::array<std::string_view, 12> kHost = {
      "DefaultCPUAllocator",  "bad_alloc",  "MemoryError",    "Cannot allocate memory",
      "OOM killer",           "OpenBLAS",   "oom-kill",       "oom_kill",
      "memory allocation of", "OOM Killed", "Killed process", "exceeded memory"};
  return !contains_any(line, kDevice) && contains_any(line, kHost);
}

std::string find_launcher_line(const std::string& text) {
  constexpr std::array<std::string_view, 14> kWords = {
      "can't open file",                // CPython: the script does not exist
      "error: unrecognized arguments",  // argparse, of a launcher or of the script
      "error: the following arguments are required",
      "error: argument ",
      "ssh: connect to host",  // OpenSSH, like the next three
      "Could not resolve hostname",
      "Host key verification failed",
      "Permission denied (publickey",
      "pdsh: command not found",
      "ddress already in use",
      "There are not enough slots available",  // Open MPI's mpirun
      "srun: error: Unable to",                // Slurm
      "srun: fatal:",
      "Unable to proceed with training"};  // deepspeed/launcher/runner.py
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (contains_any(line, kWords)) return line;
  }
  return "";
}

std::optional<std::string> port_in_use(const std::string& line) {
  if (line.find("ddress already in use") == std::string::npos) return std::nullopt;
  std::string port = between(line, "port: ", ",");
  const bool is_number = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::optional(std::move(port)) : std::nullopt;
}

std::string without_label(const std::string& line) {
  const std::optional<trial::RankLabel> label = trial::rank_label(line);
  const std::string body = label ? line.substr(label->length) : line;
  return body.substr(std::min(body.find_first_not_of(' '), body.size()));
}

namespace {

constexpr int kSignalBase = 128;  // shells add it to a signal's number

constexpr const char* kOpensBase64 =
    "the script opens its configuration itself and cannot read base64: let the runner's \"config_as\" be \"path\"";

constexpr std::array<std::pair<DsClass, const char*>, 9> kNames = {{
    {DsClass::kSuccess, "success"},
    {DsClass::kTooShort, "too short"},
    {DsClass::kOutOfMemory, "out of memory"},
    {DsClass::kInvalid, "invalid configuration"},
    {DsClass::kHang, "hang"},
    {DsClass::kKilled, "killed"},
    {DsClass::kLauncher, "launcher trouble"},
    {DsClass::kShortage, "shortage"},
    {DsClass::kCrash, "crash"},
}};

std::string without_break(const std::string& line) {
  constexpr std::size_t kLongest = 300;
  const std::string shown = trial::printable(line.substr(0, kLongest));
  return line.size() > kLongest ? shown + " ..." : shown;
}

class Judge {
 public:
  explicit Judge(const DsEnd& end) : end_(end), cause_(trial::cause_of_failure(end.standard_error)) {
    if (!cause_) cause_ = trial::cause_of_failure(end.standard_output);
  }

  DsVerdict verdict() const {
    const bool complete = end_.steps >= end_.steps_due;
    if (complete && end_.exit_code == 0) return {DsClass::kSuccess, measured_text(), std::nullopt};
    if (const auto by_exception = by_cause()) return *by_exception;
    if (complete) return {DsClass::kSuccess, measured_text(), std::nullopt};
    if (const auto complaint = memory_words()) return out_of_memory(complaint->line, complaint->requested);
    if (end_.timed_out || end_.hung) return {DsClass::kHang, hang_text(), std::nullopt};
    const bool was_killed = ended_by(SIGKILL);
    if (was_killed && end_.oom_kills.value_or(0) > 0) {
      return out_of_memory("the kernel's OOM killer ended a rank", std::nullopt);
    }
    if (end_.exit_code == 0) return {DsClass::kTooShort, short_text(), std::nullopt};
    if (was_killed) return {DsClass::kKilled, killed_text(), std::nullopt};
    if (const auto shortage = shortage_text()) return {DsClass::kShortage, without_break(*shortage), std::nullopt};
    if (const auto line = collective_timeout()) {
      const std::string what = without_break(without_label(*line));
      return {DsClass::kHang, fmt::format("a collective did not end in time ({}): {}", progress(), what), std::nullopt};
    }
    if (const auto flag = refused_addition()) return {DsClass::kLauncher, addition_text(*flag), std::nullopt};
    if (const std::string line = launcher_line(); !line.empty()) return launcher(line);
    return {DsClass::kCrash, crash_text(), std::nullopt};
  }

 private:
  std::optional<DsVerdict> by_cause() const {
    if (!cause_) return std::nullopt;
    // A rank that has no memory left, or that waits in vain for another, often says so behind an error of the network.
    if (const auto complaint = trial::find_memory_words(cause_->text())) return out_of_memory(*cause_, *complaint);
    const bool is_told = memory_words() || collective_timeout();
    if (!is_told && is_of_the_launcher(*cause_)) return launcher(cause_->line());
    if (!is_told && is_of_the_network(*cause_, end_.steps)) {
      if (const auto shortage = shortage_text())
        return DsVerdict{DsClass::kShortage, without_break(*shortage), std::nullopt};
      const std::string text = "the ranks did not find one another: " + without_break(cause_->line());
      return DsVerdict{DsClass::kLauncher, text, std::nullopt};
    }
    if (opens_base64(*cause_)) return DsVerdict{DsClass::kInvalid, kOpensBase64, std::nullopt};
    if (!is_a_refusal(*cause_, end_.steps)) return std::nullopt;
    const std::string text = "DeepSpeed refuses the configuration: " + without_break(refusal_text(*cause_));
    return DsVerdict{DsClass::kInvalid, text, std::nullopt};
  }

  // Returns what is found in stderr, or else in stdout.
  template <class Find>
  std::invoke_result_t<Find, const std::string&> found(const Find& find) const {
    auto what = find(end_.standard_error);
    return what ? what : find(end_.standard_output);
  }

  std::optional<trial::MemoryComplaint> memory_words() const { return found(trial::find_memory_words); }
  std::optional<std::string> collective_timeout() const { return found(trial::find_collective_timeout); }
  std::optional<std::string> shortage_text() const { return found(trial::find_shortage); }

  std::optional<std::string> refused_addition() const {
    return found([&](const std::string& text) { return trial::refused_addition(text, end_.argv, end_.users_command); });
  }

  static std::string addition_text(const std::string& flag) {
    return fmt::format(
        "the script does not take {}, which krigtune added because the command looks like one of the Hugging Face "
        "Trainer: write the flags that mean the same in \"autotuning\": {{\"arg_mappings\": ...}} of the file, or "
        "leave "
        "the parameter out of the session's space",
        flag);
  }

  std::string launcher_line() const {
    if (end_.steps > 0) return "";
    std::string line = find_launcher_line(end_.standard_error);
    if (!line.empty()) return line;
    std::string said = find_launcher_line(end_.standard_output);
    constexpr int kCannotExecute = 126, kNotFound = 127;  // exit codes of POSIX shells
    if (!said.empty() || (end_.exit_code != kCannotExecute && end_.exit_code != kNotFound)) return said;
    return fmt::format("exit code {}: a program of the command cannot be run", end_.exit_code);
  }

  bool ended_by(int signal) const {
    return trial::tells_of_signal(end_.exit_code, end_.standard_error, signal) ||
           trial::tells_of_signal(end_.exit_code, end_.standard_output, signal);
  }

  static DsVerdict out_of_memory(const std::string& line, std::optional<Bytes> requested) {
    return {DsClass::kOutOfMemory,
            fmt::format("out of memory on the {}: {}", is_of_host_memory(line) ? "host" : "device",
                        without_break(without_label(line))),
            requested};
  }

  // CUDA reports host memory that it cannot pin like memory of the device.
  static DsVerdict out_of_memory(const trial::PythonException& cause, const trial::MemoryComplaint& complaint) {
    const bool says_it_first = trial::find_memory_words(cause.line()).has_value();
    const std::string line = says_it_first ? cause.line() : cause.type + ": " + complaint.line;
    if (cause.code.find("pin_memory") == std::string::npos) return out_of_memory(line, complaint.requested);
    return {DsClass::kOutOfMemory, "out of memory on the host, which was to be pinned: " + without_break(line),
            complaint.requested};
  }

  static DsVerdict launcher(const std::string& line) {
    const std::optional<std::string> port = port_in_use(line);
    const std::string what =
        port
            ? fmt::format("port {} is in use: give another one (--master_port), or end the process that uses it", *port)
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
    return "the command ended well, but no step was timed: the script trains without DeepSpeed or gives it another "
           "configuration, has a pipeline engine (which is not timed), or its first rank does not see the trial's "
           "directory";
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
    if (!cause_ && ended_by(SIGBUS)) return fmt::format("a rank ended{} by {}", after, trial::kBusError);
    return fmt::format("it ended{} ({}){}", after, ending(), cause_ ? ": " + without_break(cause_->line()) : "");
  }

  const DsEnd& end_;
  std::optional<trial::PythonException> cause_;
};

trial::FailureReason reason_of(DsClass what, const DsEnd& end) {
  switch (what) {
    case DsClass::kSuccess:
    case DsClass::kTooShort:
      return trial::FailureReason::kBadResult;
    case DsClass::kInvalid:
      return trial::FailureReason::kInvalid;
    case DsClass::kHang:
      return end.timed_out ? trial::FailureReason::kTimeout : trial::FailureReason::kHang;
    case DsClass::kLauncher:
    case DsClass::kShortage:
      return trial::FailureReason::kEnvironment;
    case DsClass::kOutOfMemory:
    case DsClass::kKilled:
    case DsClass::kCrash:
      break;
  }
  return trial::FailureReason::kCrash;
}

}  // namespace

const char* to_string(DsClass what) {
  for (const auto& [value, name] : kNames) {
    if (value == what) return name;
  }
  return "crash";
}

DsVerdict judge(const DsEnd& end) { return Judge(end).verdict(); }

trial::Outcome outcome_of(const DsVerdict& verdict, const DsEnd& end) {
  if (verdict.what == DsClass::kOutOfMemory) return trial::OutOfMemory{verdict.requested, false};
  // The sentence of any other class says more than the last output of ranks and launchers.
  const bool unknown = verdict.what == DsClass::kCrash;
  const std::string said = unknown ? trial::failure_text(end.standard_output, end.standard_error) : "";
  return trial::Failed{reason_of(verdict.what, end), end.exit_code,
                       verdict.sentence + (said.empty() ? "" : "\n" + said)};
}

}  // namespace krigtune::deepspeed
