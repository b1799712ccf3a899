#pragma once
#include <string>
#include <vector>

#include "core/clock.h"

namespace krigtune::executor {

/// What a scheduler's command said.
struct ToolEnd {
  std::string start_error;  ///< not empty: it is not there, and why
  bool timed_out = false;   ///< it hung, and was ended
  int exit_code = 0;
  std::string out;  ///< at most a few MiB of each
  std::string err;

  bool ok() const { return start_error.empty() && !timed_out && exit_code == 0; }
  /// For people: the first line of what it said, or why it said nothing.
  std::string complaint() const;
};

/// Runs one, never by a shell. `unset`: variables of ours that it must not see. Takes up to timeout_s. From any thread.
ToolEnd run_tool(const std::vector<std::string>& argv, double timeout_s, const Clock& clock,
                 const std::vector<std::string>& unset = {});

/// {"env", "-u", NAME, ..., } + argv: the program without these variables.
std::vector<std::string> without_variables(const std::vector<std::string>& unset, const std::vector<std::string>& argv);

/// Names in our environment that begin with one of the prefixes, but for those of `keep`.
std::vector<std::string> variables_with(const std::vector<std::string>& prefixes, const std::vector<std::string>& keep);

}  // namespace krigtune::executor
