#pragma once
#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace krigtune::trial {

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

/// What a program said when memory ran out.
struct MemoryComplaint {
  std::string line;
  std::optional<Bytes> requested;  ///< the allocation that failed, where the line tells it
};

/// A pattern of the user's (ECMAScript, without back-references), made so that matching takes polynomial time and no
/// deep recursion, whatever the output is. Throws std::regex_error.
std::regex compile_pattern(const std::string& pattern);

/// The first line that is known to mean that memory ran out, or that one of `patterns` is found in. Lines are looked at
/// one by one, and not beyond their first 1000 characters.
std::optional<MemoryComplaint> find_memory_complaint(const std::string& text, const std::vector<std::regex>& patterns);

/// Likewise, but what launchers say of a rank that got SIGKILL is none: they do not know who sent it.
std::optional<MemoryComplaint> find_memory_words(const std::string& text);

/// A launcher says that a rank got SIGKILL, or the exit code of one that did.
bool tells_of_a_kill(const std::string& text);

/// The size behind "allocate" or "allocating": "Tried to allocate 2.50 GiB", "you tried to allocate 4096 bytes".
std::optional<Bytes> requested_in(const std::string& line);

}  // namespace krigtune::trial
