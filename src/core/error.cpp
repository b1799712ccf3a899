#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/utf8.h"

namespace krigtune {
namespace {

// Errors quote what the user wrote. Its line breaks and escape sequences must not reach the terminal.
std::string printable(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = utf8_at(text, i);
    const bool is_shown = character.valid && character.code >= 0x20 && character.code != 0x7f;
    result += is_shown                 ? text.substr(i, character.bytes)
              : character.code == '\n' ? std::string("\\n")
                                       : fmt::format("\\x{:02x}", character.code);
    i += character.bytes;
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
