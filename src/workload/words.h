#pragma once
#include <array>
#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "krigtune/core/json.h"
#include "krigtune/core/text.h"

namespace krigtune {

/// The words of an enum as they stand in a session.
template <class Enum, std::size_t N>
using Words = std::array<std::pair<std::string_view, Enum>, N>;

/// The enumerator whose word stands at `key`, or the fallback when the key is absent.
template <class Enum, std::size_t N>
Enum read_word(JsonObject& object, const std::string& key, const Words<Enum, N>& words, Enum fallback) {
  if (!object.has(key)) return object.find(key), fallback;
  const std::string text = object.text(key, "");
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.emplace_back(word);
  }
  object.fail(key, "unknown value '" + text + "'", suggestion(text, known));
}

template <class Enum, std::size_t N>
std::string word_of(Enum value, const Words<Enum, N>& words) {
  for (const auto& [word, other] : words) {
    if (other == value) return std::string(word);
  }
  assert(false);
  return "";
}

}  // namespace krigtune
