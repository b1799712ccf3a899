#pragma once
#include <string>
#include <string_view>

// Small things about words that this room shares.
namespace krigtune {

/// Without blanks at either end.
inline std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

}  // namespace krigtune
