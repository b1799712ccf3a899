#pragma once
#include <string>
#include <vector>

#include "core/clock.h"

namespace krigtune::executor {

/// The result of a scheduler's command.
struct ToolEnd {
  std::string start_error;  ///< if not empty, why the command could not be started
  bool timed_out = false;   ///< it did not answer in time and was ended
  int exit_code = 0;
  std::string out;  ///< each of the two has at most a few MiB
  std::string err;

  bool ok() const { return start_error.empty() && !timed_out && exit_code == 0; }
  /// Returns, for people, the first line of its output, or why there is none.
  std::string complaint() const;
};

/// Runs a command without a shell, for at most timeout_s. It does not see the environment variables of `unset`. Safe
/// from any thread.
ToolEnd run_tool(const std::vector<std::string>& argv, double timeout_s, const Clock& clock,
                 const std::vector<std::string>& unset = {});

/// Returns {"env", "-u", NAME, ..., } + argv, which runs the program without these variables.
std::vector<std::string> without_variables(const std::vector<std::string>& unset, const std::vector<std::string>& argv);

/// Returns the names in krigtune's environment that begin with one of the prefixes, except those in `keep`.
std::vector<std::string> variables_with(const std::vector<std::string>& prefixes, const std::vector<std::string>& keep);

}  // namespace krigtune::executor
