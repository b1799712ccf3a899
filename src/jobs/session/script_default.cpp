// Finds the call whose argument is the flag, and in it the keyword argument default. The script is only read as text,
// so what it computes is not found.
#include "jobs/session/script_default.h"

#include <algorithm>
#include <cctype>

namespace krigtune::jobs {
namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Returns the end of the string literal that begins at `at`; its quote is there.
std::size_t end_of_literal(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

// Returns the end of the argument that begins at `at`: a comma or the closing bracket of the call.
std::size_t end_of_argument(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_literal(text, i) - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth-- == 0) return i;
    } else if (c == ',' && depth == 0) {
      return i;
    }
  }
  return text.size();
}

// Returns the value of an argument `default=VALUE`; empty for another argument.
std::optional<std::string_view> value_of_default(std::string_view argument) {
  constexpr std::string_view kDefault = "default";
  while (!argument.empty() && is_blank(argument.front())) argument.remove_prefix(1);
  if (!argument.starts_with(kDefault)) return std::nullopt;
  argument.remove_prefix(kDefault.size());
  while (!argument.empty() && is_blank(argument.front())) argument.remove_prefix(1);
  if (argument.empty() || argument.front() != '=') return std::nullopt;
  argument.remove_prefix(1);
  while (!argument.empty() && is_blank(argument.front())) argument.remove_prefix(1);
  while (!argument.empty() && is_blank(argument.back())) argument.remove_suffix(1);
  return argument;
}

// Returns a literal without its quotes, or a number as it is written. Empty for None, a name or a calculation.
std::optional<std::string> plain_value(std::string_view value) {
  if (value.empty()) return std::nullopt;
  if (value.front() == '"' || value.front() == '\'') {
    const std::size_t end = end_of_literal(value, 0);
    return end == value.size() && end > 1 ? std::optional(std::string(value.substr(1, end - 2))) : std::nullopt;
  }
  std::string number(value);
  std::erase(number, '_');  // 1_000
  const bool is_number = number.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                         number.find_first_of("0123456789") != std::string::npos;
  return is_number || number == "True" || number == "False" ? std::optional(number) : std::nullopt;
}

// The flag's literal is an argument of a call, behind "(" or ",".
bool is_argument(std::string_view script, std::size_t at) {
  while (at > 0 && is_blank(script[at - 1])) --at;
  return at > 0 && (script[at - 1] == '(' || script[at - 1] == ',');
}

// Returns the default among the arguments that follow the flag's literal.
std::optional<std::string> default_behind(std::string_view script, std::size_t at) {
  std::size_t end = end_of_argument(script, at);
  while (end < script.size() && script[end] == ',') {
    const std::size_t begin = end + 1;
    end = end_of_argument(script, begin);
    if (const auto value = value_of_default(script.substr(begin, end - begin))) return plain_value(*value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> default_in_script(std::string_view script, std::string_view flag) {
  const auto same = [](char a, char b) { return (a == '_' ? '-' : a) == (b == '_' ? '-' : b); };
  std::optional<std::string> found;
  for (std::size_t at = 0; at < script.size();) {
    const auto match =
        std::search(script.begin() + static_cast<std::ptrdiff_t>(at), script.end(), flag.begin(), flag.end(), same);
    if (match == script.end()) break;
    const auto begin = static_cast<std::size_t>(match - script.begin());
    at = begin + flag.size();
    const char quote = begin > 0 ? script[begin - 1] : '\0';
    const bool is_literal = (quote == '"' || quote == '\'') && at < script.size() && script[at] == quote;
    if (!is_literal || !is_argument(script, begin - 1)) continue;
    const std::optional<std::string> value = default_behind(script, at + 1);
    if (found && value != found) return std::nullopt;
    found = value;
    if (!found) return std::nullopt;
  }
  return found;
}

}  // namespace krigtune::jobs
