#include "core/formats/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"

namespace krigtune {
namespace {

// The library bounds the depth of arrays and inline tables, but "a.b.c = 1" makes a table for each part of the key.
void check_keys(std::string_view text, const std::string& prefix) {
  constexpr int kMostParts = 1000;
  int dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("=,\n{}[]#").find(text[i]) != std::string_view::npos) dots = 0;
    if (text[i] != '.' || ++dots < kMostParts) continue;
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n') + 1;
    throw UserError(fmt::format("{}line {}: a key of more than {} parts", prefix, line, kMostParts), "shorten it");
  }
}

// Returns the end of the string that begins at `at`, of one line or of several.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const std::string quote(text.substr(at, 3) == std::string(3, text[at]) ? 3 : 1, text[at]);
  for (std::size_t i = at + quote.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && quote.front() == '"') {
      ++i;
    } else if (text.substr(i, quote.size()) == quote || (quote.size() == 1 && text[i] == '\n')) {
      return i + quote.size();
    }
  }
  return text.size();
}

// What the library takes for granted, so that other text is undefined behaviour in it (toml++ 3.3): the name of a table
// begins like a name, and only strings and comments have characters beyond ASCII.
class Checks {
 public:
  Checks(std::string_view text, const std::string& prefix) : text_(text), prefix_(prefix) {}

  void run() {
    int depth = 0;
    bool begins_line = true;
    for (std::size_t i = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '"' || c == '\'') {
        i = end_of_string(text_, i) - 1;
      } else if (c == '#') {
        i = std::min(text_.find('\n', i), text_.size()) - 1;
      } else if (c == '[' || c == '{') {
        if (c == '[' && depth == 0 && begins_line) check_name(i);
        ++depth;
      } else if (c == ']' || c == '}') {
        depth = std::max(0, depth - 1);
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        fail(i, "a character beyond ASCII, which only strings and comments may have");
      }
      begins_line =
          text_[std::min(i, text_.size() - 1)] == '\n' || (begins_line && (c == ' ' || c == '\t' || c == '\r'));
    }
  }

 private:
  void check_name(std::size_t bracket) const {
    const bool is_list = bracket + 1 < text_.size() && text_[bracket + 1] == '[';
    const std::size_t name = text_.find_first_not_of(" \t", bracket + (is_list ? 2 : 1));
    if (name == std::string_view::npos) return;
    const char c = text_[name];
    const bool is_name = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("_-\"']").find(c) != std::string_view::npos;
    if (!is_name) fail(bracket, "no name of a table");
  }

  [[noreturn]] void fail(std::size_t at, const char* what) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    throw UserError(fmt::format("{}invalid TOML at line {}: {}", prefix_, line, what), "fix that line");
  }

  std::string_view text_;
  const std::string& prefix_;
};

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& source) {
  const std::string prefix = source.empty() ? "" : source + ": ";
  check_keys(text, prefix);
  Checks(text, prefix).run();
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw UserError(
        fmt::format("{}invalid TOML at line {}: {}", prefix, error.source().begin.line, error.description()),
        "fix that line");
  }
}

}  // namespace krigtune
