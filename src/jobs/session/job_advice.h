#pragma once
#include <string>
#include <vector>

// Lines to type, for error messages, built from the user's own command.
namespace krigtune::jobs {

/// A word of the command that resembles a known parameter.
struct LooksLike {
  std::string flag;       ///< in the syntax of --vary: "--mbs", "train.micro_batch=", "$MBS"
  std::string parameter;  ///< micro_batch
  std::string option;     ///< "micro_batch=--mbs:1,2,4,8"
};

/// Returns them in the order of the command.
std::vector<LooksLike> known_words(const std::vector<std::string>& command);

/// Returns "krigtune tune --vary 'micro_batch=--mbs:1,2,4,8' --metric 'tokens/s ([0-9.]+)' -- python train.py --mbs 4".
/// Missing `vary` and `metric` are replaced by an example for this command.
std::string example_line(const std::string& typed_as, const std::vector<std::string>& command,
                         std::vector<std::string> vary, const std::string& metric);

/// Throws UserError: no recipe matches the command, and nothing says what to vary.
[[noreturn]] void refuse_unknown_job(const std::string& typed_as, const std::vector<std::string>& command,
                                     const std::string& metric);

}  // namespace krigtune::jobs
