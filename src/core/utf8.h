#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace krigtune {

/// A character of a text in UTF-8. Overlong forms, surrogates and torn sequences are none: then it is one byte.
struct Utf8Character {
  std::uint32_t code = 0;  ///< the code point; the byte where it is not `valid`
  std::size_t bytes = 1;
  bool valid = true;
};

/// The one that begins at `at`, which lies within the text.
Utf8Character utf8_at(std::string_view text, std::size_t at);

}  // namespace krigtune
