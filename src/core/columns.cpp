// Widths are those of Unicode 15 (East Asian Width W and F; general categories Mn, Me and Cf). The ranges are a little
// coarser where most of a block has one width: a character that is counted too wide costs only a blank.
#include "core/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/utf8.h"

namespace krigtune {
namespace {

struct Range {
  std::uint32_t first, last;
};

constexpr std::array<Range, 24> kWide = {
    {{0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC}, {0x23F0, 0x23F3},   {0x25FD, 0x25FE},
     {0x2614, 0x2615}, {0x2648, 0x2653}, {0x26A1, 0x26FD}, {0x2705, 0x2728}, {0x274C, 0x2757},   {0x2795, 0x27BF},
     {0x2B1B, 0x2B55}, {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xA960, 0xA97C}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
     {0xFE10, 0xFE19}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFD}}};

constexpr std::array<Range, 14> kCombining = {{{0x0300, 0x036F},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05BD},
                                               {0x0610, 0x061A},
                                               {0x064B, 0x065F},
                                               {0x0E34, 0x0E3A},
                                               {0x0E47, 0x0E4E},
                                               {0x1AB0, 0x1AFF},
                                               {0x1DC0, 0x1DFF},
                                               {0x20D0, 0x20FF},
                                               {0x302A, 0x302F},
                                               {0xFE00, 0xFE0F},
                                               {0xFE20, 0xFE2F},
                                               {0xE0100, 0xE01EF}}};

// Marks of the writing direction, joiners, invisible operators, tags.
constexpr std::array<Range, 8> kInvisible = {{{0x00AD, 0x00AD},
                                              {0x061C, 0x061C},
                                              {0x180E, 0x180E},
                                              {0x200B, 0x200F},
                                              {0x2028, 0x202E},
                                              {0x2060, 0x206F},
                                              {0xFEFF, 0xFEFF},
                                              {0xE0000, 0xE007F}}};

template <std::size_t N>
bool is_in(const std::array<Range, N>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const Range& range) { return range.first <= code && code <= range.last; });
}

int width_of(const Utf8Character& character) {
  if (!character.valid) return 1;
  if (is_in(kCombining, character.code) || is_in(kInvisible, character.code)) return 0;
  return is_in(kWide, character.code) ? 2 : 1;
}

// Returns the longest prefix that fits into so many columns.
std::string_view beginning(std::string_view text, int columns) {
  int used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Character character = utf8_at(text, at);
    used += width_of(character);
    if (used > columns) break;
    at += character.bytes;
  }
  return text.substr(0, at);
}

std::string escaped(const Utf8Character& character) {
  if (character.code == '\n') return "\\n";
  if (character.code == '\r') return "\\r";
  if (character.code == '\t') return "\\t";
  return character.code < 0x100U ? fmt::format("\\x{:02x}", character.code) : fmt::format("\\u{:04x}", character.code);
}

}  // namespace

int columns_of(std::string_view text) {
  int columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    columns += width_of(character);
    at += character.bytes;
  }
  return columns;
}

std::string visible(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    const bool is_control = character.code < 0x20U || (character.code >= 0x7FU && character.code < 0xA0U);
    if (!character.valid || is_control || is_in(kInvisible, character.code)) {
      result += escaped(character);
    } else {
      result += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  return result;
}

std::string visible_lines(std::string_view text) {
  std::string result;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    result += visible(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return result;
    result += '\n';
    begin = end + 1;
  }
}

std::string clipped(std::string_view line, int columns) {
  constexpr int kDots = 3;
  if (beginning(line, columns).size() == line.size()) return std::string(line);
  if (columns <= kDots) return std::string(beginning(line, std::max(columns, 0)));
  return fmt::format("{}...", beginning(line, columns - kDots));
}

std::string padded(std::string_view text, int columns, bool right_aligned) {
  const int blanks = std::max(columns - columns_of(text), 0);
  return right_aligned ? fmt::format("{:{}}{}", "", blanks, text) : fmt::format("{}{:{}}", text, "", blanks);
}

std::string wrapped_lines(std::string_view text, int columns, int indent) {
  std::string result;
  int used = 0;
  bool has_word = false;  // whether the current line has a word
  const std::string next_line = fmt::format("\n{:{}}", "", indent);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t word_begin = std::min(text.find_first_not_of(' ', begin), text.size());
    const std::size_t end = std::min(text.find(' ', word_begin), text.size());
    std::string_view blanks = text.substr(begin, word_begin - begin);
    const std::string_view word = text.substr(word_begin, end - word_begin);
    if (word.empty()) break;
    if (has_word && used + static_cast<int>(blanks.size()) + columns_of(word) > columns) {
      result += next_line;
      used = indent;
      blanks = {};
      has_word = false;
    }
    const std::string shown = clipped(word, std::max(columns - used - static_cast<int>(blanks.size()), 1));
    result += blanks;
    result += shown;
    used += static_cast<int>(blanks.size()) + columns_of(shown);
    has_word = true;
    begin = end;
  }
  return result;
}

}  // namespace krigtune
