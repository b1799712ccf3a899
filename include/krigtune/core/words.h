#pragma once
#include <array>
#include <cassert>
#include <string>
#include <string_view>
#include <utility>

namespace krigtune {

/// The words of an enum as they stand in a session.
template <class Enum, std::size_t N>
using EnumWords = std::array<std::pair<std::string_view, Enum>, N>;

template <class Enum, std::size_t N>
std::string word_of(Enum value, const EnumWords<Enum, N>& words) {
  for (const auto& [word, other] : words) {
    if (other == value) return std::string(word);
  }
  assert(false);
  return "";
}

}  // namespace krigtune
