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
/// Closed trials that count by what became of them: ok first, then the others, the most frequent first.
std::vector<ClassCount> counts_by_class(const search::History& history);
/// "9 ok, 2 oom, 1 failed (crash)"; "none" where there is none.
std::string text_of(const std::vector<ClassCount>& counts);

/// What a failed trial said at last: one line. Empty: it did not fail, said nothing, or was ended by the user.
std::string last_line_of(const journal::Trial& trial);

}  // namespace krigtune::report
