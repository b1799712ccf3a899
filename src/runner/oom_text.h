#pragma once
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "krigtune/core/units.h"

namespace krigtune {

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

}  // namespace krigtune
