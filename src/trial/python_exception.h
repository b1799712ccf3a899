#pragma once
#include <optional>
#include <string>
#include <vector>

namespace krigtune::trial {

/// An exception that ended a Python process, as its trace shows it.
struct PythonException {
  std::string type;                ///< without its module: AssertionError
  std::string message;             ///< the rest of the line
  std::vector<std::string> more;   ///< lines that follow it
  std::vector<std::string> files;  ///< of the frames, outermost first
  std::optional<int> rank;         ///< whom the launcher says it to be of

  std::string line() const { return message.empty() ? type : type + ": " + message; }
};

/// The exception that the job failed of: of the rank that failed first where a launcher names it, else the first that
/// is no consequence of another rank's end. Of a chain ("During handling of ...") the last. Empty: there is none.
std::optional<PythonException> cause_of_failure(const std::string& text);

}  // namespace krigtune::trial
