#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/text.h"

namespace krigtune::trial {

/// An exception that ended a Python process, as its trace shows it.
struct PythonException {
  std::string type;                ///< without its module: AssertionError
  std::string message;             ///< the rest of the line
  std::vector<std::string> more;   ///< lines that follow it
  std::vector<std::string> files;  ///< of the frames, outermost first
  std::string code;                ///< the source line of the innermost frame
  std::string origin;              ///< line of the exception that it was raised from ("raise ... from e"); "": none
  std::optional<int> rank;         ///< the rank that it belongs to according to the launcher

  std::string line() const { return message.empty() ? type : type + ": " + message; }
  std::string text() const { return line() + "\n" + join(more, "\n"); }
};

/// Returns whether a rank or a launcher raises it because another rank has failed.
bool is_consequence(const PythonException& exception);

/// Returns the exception that made the job fail: that of the first failing rank if a launcher names it, otherwise the
/// first that is not a consequence of another rank's end. In a chain ("During handling of ...") it is the last one.
/// Boxes in which rich shows a trace are read, too. Empty if there is none.
std::optional<PythonException> cause_of_failure(const std::string& text);

}  // namespace krigtune::trial
