#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

std::vector<std::string> lines_of(const std::string& text);

/// What a launcher puts before a rank's line: "[rank3]:", "[1,3]<stderr>:", "3: ".
struct RankLabel {
  int rank;
  std::size_t length;  ///< the line itself begins there
};
std::optional<RankLabel> rank_label(std::string_view line);

/// A line as a terminal would leave it: of a progress bar the last state, no escape sequences; '?' for what is no
/// UTF-8.
std::string printable(const std::string& line);

/// The number of the rank that failed first, as launchers name it (torchrun's "Root Cause", mpirun's and srun's
/// reports). Empty: nobody says.
std::optional<int> first_failing_rank(const std::string& text);

/// What to show of a failed program's output: the last lines of the first failing rank where output is labelled with
/// ranks, else the last lines of stderr, of stdout where that is empty. Launchers' own reports and traces are left out
/// while anything else is there. Control characters are dropped, and what is no UTF-8 becomes '?'.
std::string failure_text(const std::string& standard_output, const std::string& standard_error);

}  // namespace krigtune
