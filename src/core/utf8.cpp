#include "core/utf8.h"

#include <array>

namespace krigtune {

Utf8Character utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80U) return {first, 1, true};
  const std::size_t bytes = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U || at + bytes > text.size()) return {first, 1, false};
  std::uint32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return {first, 1, false};
    code = (code << 6U) | (byte(at + i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800U && code <= 0xDFFFU;
  if (code < kSmallest[bytes] || code > 0x10FFFFU || is_surrogate) return {first, 1, false};
  return {code, bytes, true};
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    if (!character.valid) return false;
    at += character.bytes;
  }
  return true;
}

}  // namespace krigtune
