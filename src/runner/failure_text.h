#pragma once
#include <optional>
#include <string>

namespace krigtune {

/// The number of the rank that failed first, as launchers name it (torchrun's "Root Cause", mpirun's and srun's
/// reports). Empty: nobody says.
std::optional<int> first_failing_rank(const std::string& text);

/// What to show of a failed program's output: the last lines of the first failing rank where output is labelled with
/// ranks, else the last lines of stderr, of stdout where that is empty. Launchers' own reports and traces are left out
/// while anything else is there. Control characters are dropped, and what is no UTF-8 becomes '?'.
std::string failure_text(const std::string& standard_output, const std::string& standard_error);

}  // namespace krigtune
