#pragma once
#include <sstream>
#include <string>
#include <vector>

namespace krigtune {

/// Splits a line into words at blanks.
inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace krigtune
