#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace krigtune {

/// One character of a UTF-8 text. Overlong forms, surrogates and torn sequences are not valid: each of their bytes is
/// then a character.
struct Utf8Character {
  std::uint32_t code = 0;  ///< the code point, or the byte if not `valid`
  std::size_t bytes = 1;
  bool valid = true;
};

/// Returns the character that begins at `at`, which must lie within the text.
Utf8Character utf8_at(std::string_view text, std::size_t at);

/// Returns whether all of the text is valid UTF-8, without which it cannot be a text of JSON.
bool is_utf8(std::string_view text);

}  // namespace krigtune
