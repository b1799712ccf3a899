#pragma once
#include <string>
#include <vector>

#include "answer/answer.h"

namespace krigtune::report {

/// Returns "9 ok, 2 oom, 1 failed (crash)", or "none".
std::string text_of(const std::vector<answer::ClassCount>& counts);

/// Returns "9 ok, 2 oom, 1 failed", or "none".
std::string status_text_of(const answer::TrialCounts& trials);

/// Returns the last line of a failed trial's output. Empty if it did not fail, has no output, or was ended by the user.
std::string last_line_of(const journal::Trial& trial);

}  // namespace krigtune::report
