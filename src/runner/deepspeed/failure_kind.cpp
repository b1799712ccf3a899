#include "failure_kind.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "failure_text.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

template <class Words>
bool holds_any(std::string_view text, const Words& words) {
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

bool was_raised_in(const PythonException& cause, const std::string& part) {
  return !cause.files.empty() && cause.files.back().find(part) != std::string::npos;
}

}  // namespace

bool is_of_the_network(const PythonException& cause, std::int64_t steps) {
  // torch.distributed, ProcessGroupNCCL; before torch 2.1 a RuntimeError of the same words. Later on it may be
  // anything.
  constexpr std::array<std::string_view, 3> kWords = {"NCCL error in", "ncclSystemError", "ncclInvalidUsage"};
  return steps == 0 && holds_any(cause.message, kWords);
}

bool is_of_the_launcher(const PythonException& cause) {
  // torch.distributed: TCPStore, rendezvous; 2.1 on, before it is a RuntimeError that names the address.
  constexpr std::array<std::string_view, 5> kTypes = {"DistNetworkError", "DistStoreError", "RendezvousConnectionError",
                                                      "RendezvousTimeoutError", "RendezvousClosedError"};
  constexpr std::array<std::string_view, 3> kWords = {"EADDRINUSE", "ddress already in use",
                                                      "Name or service not known"};
  return is_one_of(cause.type, kTypes) || holds_any(cause.message, kWords) ||
         was_raised_in(cause, "/deepspeed/launcher/");
}

bool opens_base64(const PythonException& cause) {
  return cause.type == "OSError" &&
         holds_any(cause.message, std::array<std::string_view, 1>{"File name too long: 'ey"});
}

bool is_a_refusal(const PythonException& cause, std::int64_t steps) {
  constexpr std::array<std::string_view, 3> kOwnTypes = {"ValidationError", "DeepSpeedConfigError",
                                                         "ZeRORuntimeException"};
  constexpr std::array<std::string_view, 3> kWords = {
      "Check batch related parameters",          // deepspeed/runtime/config.py
      "zero_allow_untested_optimizer",           // deepspeed/runtime/engine.py
      "DeepSpeed config values that mismatch"};  // transformers, HfTrainerDeepSpeedConfig
  if (is_one_of(cause.type, kOwnTypes) || holds_any(cause.message, kWords)) return true;
  // Its metrics, which it writes after the last step, have no place (print_json_dist).
  if (cause.type == "FileNotFoundError" && was_raised_in(cause, "/deepspeed/utils/logging.py")) return true;
  constexpr std::array<std::string_view, 2> kNoJson = {"JSONDecodeError", "HjsonDecodeError"};
  constexpr std::array<std::string_view, 5> kRaised = {"AssertionError", "ValueError", "NotImplementedError",
                                                       "TypeError", "KeyError"};
  if (steps > 0) return false;
  return is_one_of(cause.type, kNoJson) || (is_one_of(cause.type, kRaised) && was_raised_in(cause, "/deepspeed/"));
}

// pydantic 2: "stage", "  Input should be 0, 1, 2, 3 or 3 [type=enum, input_value=5, input_type=int]";
// pydantic 1: "stage", "  value is not a valid integer (type=type_error.integer)".
std::string refusal_text(const PythonException& cause) {
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
  constexpr std::array<std::string_view, 4> kDevice = {"OutOfMemoryError", "CUDA", "HIP", "XPU"};
  constexpr std::array<std::string_view, 12> kHost = {
      "DefaultCPUAllocator",  "bad_alloc",  "MemoryError",    "Cannot allocate memory",
      "OOM killer",           "OpenBLAS",   "oom-kill",       "oom_kill",
      "memory allocation of", "OOM Killed", "Killed process", "exceeded memory"};
  return !holds_any(line, kDevice) && holds_any(line, kHost);
}

std::string find_launcher_line(const std::string& text) {
  constexpr std::array<std::string_view, 14> kWords = {
      "can't open file",                // CPython: no such script
      "error: unrecognized arguments",  // argparse, of a launcher or of the script
      "error: the following arguments are required",
      "error: argument ",
      "ssh: connect to host",  // OpenSSH, and the next three
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
    if (holds_any(line, kWords)) return line;
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
  const std::optional<RankLabel> label = rank_label(line);
  const std::string body = label ? line.substr(label->length) : line;
  return body.substr(std::min(body.find_first_not_of(' '), body.size()));
}

}  // namespace krigtune
