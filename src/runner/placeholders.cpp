#include "krigtune/runner/placeholders.h"

#include <algorithm>

namespace krigtune {
namespace {

constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// Calls `name(text)` for each "{text}" and `plain(char)` for all else.
template <class Name, class Plain>
void walk(const std::string& word, const Name& name, const Plain& plain) {
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] == '{' && word.compare(at, 2, "{{") == 0) {
      plain(word[at++]);
      continue;
    }
    const std::size_t end = word[at] == '{' ? word.find_first_not_of(kLetters, at + 1) : std::string::npos;
    if (end != std::string::npos && end > at + 1 && word[end] == '}') {
      name(word.substr(at + 1, end - at - 1));
      at = end;
    } else {
      plain(word[at]);
    }
  }
}

}  // namespace

std::vector<std::string> known_placeholders() { return {"config", "result", "dir", "trial"}; }

std::vector<std::string> unknown_placeholders(const std::string& word) {
  const std::vector<std::string> known = known_placeholders();
  std::vector<std::string> unknown;
  const auto check = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown.push_back(name);
  };
  walk(word, check, [](char /*c*/) {});
  return unknown;
}

std::string fill_in(const std::string& word, const Placeholders& values) {
  std::string filled;
  const auto add_value = [&](const std::string& name) {
    for (const auto& [known, value] : values) {
      if (known == name) filled += value;
    }
  };
  walk(word, add_value, [&](char c) { filled += c; });
  return filled;
}

}  // namespace krigtune
