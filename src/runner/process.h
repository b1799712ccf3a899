#pragma once
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "krigtune/core/clock.h"

namespace krigtune {

/// A program to be run to its end. Never a shell: argv goes to the program as it is.
struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0]: a path, or a name looked up in PATH
  std::filesystem::path stdout_file;
  std::filesystem::path stderr_file;
  double timeout_s = 300.0;
  double grace_s = 2.0;                     ///< between SIGTERM and SIGKILL
  const std::atomic<bool>* stop = nullptr;  ///< once true, the program is ended as after a timeout
};

struct ProcessResult {
  int exit_code = 0;  ///< 128 + signal when a signal ended it
  int signal = 0;     ///< 0: none
  bool timed_out = false;
  bool stopped = false;     ///< by ProcessSpec::stop
  std::string start_error;  ///< not empty: it could not be started, and why
  double wall_s = 0.0;
};

/// Runs it in a process group of its own, stdin empty. When it returns, the program has ended and whatever it left
/// behind in its group has been sent SIGKILL. The program is killed too when the calling thread dies.
ProcessResult run_process(const ProcessSpec& spec, const Clock& clock);

}  // namespace krigtune
