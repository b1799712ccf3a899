#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace krigtune {
namespace {

// Returns the length of the well-formed UTF-8 sequence that begins at text[at], or 0 if there is none (RFC 3629 without
// its rules on overlong forms, which terminals refuse themselves).
std::size_t utf8_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(at) < 0x80   ? 1
                             : byte(at) < 0xc2 ? 0
                             : byte(at) < 0xe0 ? 2
                             : byte(at) < 0xf0 ? 3
                             : byte(at) < 0xf5 ? 4
                                               : 0;
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// Errors quote what the user wrote. Its line breaks and escape sequences must not reach the terminal.
std::string printable(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += byte == '\n' ? std::string("\\n") : fmt::format("\\x{:02x}", byte);
      ++i;
    } else {
      result += text.substr(i, length);
      i += length;
    }
  }
  return result;
}

// Keeps the beginning and the end of a very long text, such as a key of a megabyte.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 4096;
  constexpr std::size_t kEnd = 512;
  if (text.size() <= kMost) return text;
  return text.substr(0, kMost - kEnd) + " ... " + text.substr(text.size() - kEnd);
}

std::string one_line(const std::string& what, const std::string& hint) {
  const std::string all = shortened(what);
  return printable(hint.empty() ? all : all + "; " + shortened(hint));
}

}  // namespace

UserError::UserError(const std::string& what, const std::string& hint) : std::runtime_error(one_line(what, hint)) {}

EnvironmentError::EnvironmentError(const std::string& what, const std::string& hint)
    : std::runtime_error(one_line(what, hint)) {}

bool is_shortage(int error) {
  constexpr std::array kShortages = {EIO, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EAGAIN, ENOLCK, EFBIG};
  return std::find(kShortages.begin(), kShortages.end(), error) != kShortages.end();
}

}  // namespace krigtune
