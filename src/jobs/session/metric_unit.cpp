#include "jobs/session/metric_unit.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/text.h"
#include "session/session_blocks.h"

namespace krigtune::jobs {
namespace {

constexpr std::array<std::string_view, 12> kUsual = {"s",  "ms",  "us",     "sec",    "GB",      "GiB",
                                                     "MB", "MiB", "TFLOPS", "TFLOPs", "seconds", "tokens"};
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/%_";

struct Around {
  std::string_view before;  ///< the expression before the group
  std::string_view after;
};

// Finds the first group that keeps what it matches; an escaped bracket is none.
Around around_group(std::string_view regex) {
  std::size_t open = std::string_view::npos;
  int depth = 0;
  for (std::size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\') {
      ++i;
    } else if (regex[i] == '(') {
      if (open == std::string_view::npos && regex.substr(i + 1, 1) != "?") open = i;
      if (open != std::string_view::npos) ++depth;
    } else if (regex[i] == ')' && open != std::string_view::npos && --depth == 0) {
      return {regex.substr(0, open), regex.substr(i + 1)};
    }
  }
  return {};
}

// Writes blanks that are written as \s as themselves.
std::string with_plain_blanks(std::string text) {
  for (const std::string_view written : {"\\s*", "\\s+", "\\s"}) {
    for (std::size_t at = text.find(written); at != std::string::npos; at = text.find(written, at)) {
      text[at] = ' ';
      text.erase(at + 1, written.size() - 1);
    }
  }
  return text;
}

std::string_view first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_not_of(kLetters));
}

std::string_view last_word(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" :=") + 1);
  const std::size_t before = text.find_last_not_of(kLetters);
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

bool is_unit(std::string_view word) {
  return !word.empty() && word.find_first_of("/%") != std::string_view::npos && session::is_unit(std::string(word));
}

}  // namespace

std::string unit_in(const std::string& regex) {
  const std::string plain = with_plain_blanks(regex);
  const Around around = around_group(plain);
  const std::string_view after = first_word(around.after);
  if (is_unit(after) || is_one_of(after, kUsual)) return std::string(after);
  const std::string_view before = last_word(around.before);
  return is_unit(before) ? std::string(before) : "";
}

}  // namespace krigtune::jobs
