#pragma once
#include <string>

#include "core/clock.h"
#include "core/json.h"

// What packages are installed, and what they say, can only be asked in the Python that has them.
namespace krigtune::jobs {

/// The usual time limit: importing torch and a framework takes up to a minute on a network file system.
inline constexpr double kAskTimeoutS = 180.0;

/// A program that is run once:  PYTHON -c PROGRAM REQUEST ANSWER
/// It writes its answer, a JSON object, to the file ANSWER, because packages print what they like when they are
/// imported. It sees no GPU and no network, and reports to nobody that a package was used.
struct PythonQuestion {
  std::string option;        ///< where the user named the Python, for messages: "--check"; "": it was found otherwise
  std::string python;        ///< a program on PATH, or a path
  const char* program = "";  ///< text of the Python program
  Json request;              ///< what it is asked
  double timeout_s = kAskTimeoutS;
};

/// Returns the answer. Throws UserError, with one line, if the interpreter does not exist, fails, gives no JSON object,
/// or takes longer than the time limit.
Json ask_python(const PythonQuestion& question, const Clock& clock);

}  // namespace krigtune::jobs
