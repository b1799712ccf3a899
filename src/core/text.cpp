#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

namespace krigtune {
namespace {

// Optimal string alignment distance: an edit and a swap of neighbours cost one each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::string letters_and_digits(std::string_view text) {
  std::string plain;
  std::copy_if(text.begin(), text.end(), std::back_inserter(plain), is_letter_or_digit);
  return plain;
}

// "ib", "ndr" and "400" of "ib-ndr-400".
std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    if (is_letter_or_digit(c)) {
      pieces.back() += c;
    } else if (!pieces.back().empty()) {
      pieces.emplace_back();
    }
  }
  if (pieces.back().empty()) pieces.pop_back();
  return pieces;
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> nearest = nearest_names(word, candidates);
  return nearest.empty() ? "" : nearest.front();
}

std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string plain = letters_and_digits(word);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance =
        std::min(edit_distance(word, candidate), edit_distance(plain, letters_and_digits(candidate)));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty()) return {best};
  if (word.empty()) return {};
  const auto all_that = [&](const auto& is_near) {
    std::vector<std::string> near;
    for (const std::string& candidate : candidates) {
      if (!candidate.empty() && is_near(candidate)) near.push_back(candidate);
    }
    std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return near;
  };
  std::vector<std::string> near = all_that(
      [&](const std::string& candidate) { return candidate.starts_with(word) || word.starts_with(candidate); });
  const std::vector<std::string> pieces = pieces_of(word);
  if (near.empty() && pieces.size() > 1) {
    near = all_that([&](const std::string& candidate) {
      const std::vector<std::string> its = pieces_of(candidate);
      return std::all_of(pieces.begin(), pieces.end(), [&](const std::string& piece) { return is_one_of(piece, its); });
    });
  }
  return near;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> nearest = nearest_names(word, candidates);
  if (nearest.empty()) return "known: " + join(candidates, ", ");
  nearest.resize(std::min(nearest.size(), kMost));
  for (std::string& name : nearest) name = fmt::format("'{}'", name);
  const std::string last = nearest.back();
  nearest.pop_back();
  return fmt::format("did you mean {}{}{}?", join(nearest, ", "), nearest.empty() ? "" : " or ", last);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  std::vector<std::string> quoted;
  for (const std::string& word : words) {
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      quoted.push_back(word);
      continue;
    }
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    quoted.push_back(text + "'");
  }
  return join(quoted, " ");
}

std::string number_text(double value) {
  constexpr double kExactIntegers = 1e15;
  if (std::abs(value) < kExactIntegers && value == std::trunc(value)) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{}", value);
}

std::string count_text(double count) {
  constexpr double kRoundsUp = 0.9995;  // 999.6 million are "1 billion", not "1e+03 million"
  const auto text = [count](double unit, const char* name) { return fmt::format("{:.3g} {}", count / unit, name); };
  if (count >= kRoundsUp * 1e12) return text(1e12, "trillion");
  if (count >= kRoundsUp * 1e9) return text(1e9, "billion");
  if (count >= kRoundsUp * 1e6) return text(1e6, "million");
  return fmt::format("{:.0f}", count);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace krigtune
