#pragma once
#include <string>
#include <vector>

#include "search/trials/history.h"

namespace krigtune::report {

struct ClassCount {
  std::string name;  ///< "ok", "oom", "failed (crash)"
  int count = 0;
  int first = 0;  ///< its first trial
};
/// Counts the closed trials by their result: ok first, then the others by decreasing frequency.
std::vector<ClassCount> counts_by_class(const search::History& history);
/// Returns "9 ok, 2 oom, 1 failed (crash)", or "none".
std::string text_of(const std::vector<ClassCount>& counts);

/// Returns the last line of a failed trial's output. Empty if it did not fail, has no output, or was ended by the user.
std::string last_line_of(const journal::Trial& trial);

}  // namespace krigtune::report
