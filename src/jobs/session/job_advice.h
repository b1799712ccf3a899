#pragma once
#include <string>
#include <vector>

// What to type: lines for errors, made of the user's own command.
namespace krigtune::jobs {

/// A word of the command whose name is that of a known parameter.
struct LooksLike {
  std::string flag;       ///< as --vary takes it: "--mbs", "train.micro_batch=", "$MBS"
  std::string parameter;  ///< micro_batch
  std::string option;     ///< "micro_batch=--mbs:1,2,4,8"
};

/// In the order of the command.
std::vector<LooksLike> known_words(const std::vector<std::string>& command);

/// "krigtune tune --vary 'micro_batch=--mbs:1,2,4,8' --metric 'tokens/s ([0-9.]+)' -- python train.py --mbs 4".
/// Without `vary` and `metric` those of an example for this command.
std::string example_line(const std::string& typed_as, const std::vector<std::string>& command,
                         std::vector<std::string> vary, const std::string& metric);

/// Throws UserError: no recipe knows the command, and nothing says what to vary.
[[noreturn]] void refuse_unknown_job(const std::string& typed_as, const std::vector<std::string>& command,
                                     const std::string& metric);

}  // namespace krigtune::jobs
