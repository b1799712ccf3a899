#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pattern.h"

namespace krigtune::trial {

/// Returns text that every match of a regular expression (ECMAScript) must contain: its longest run of plain characters
/// outside groups and alternatives. Empty if no text is certain. Lines without it need not be matched.
std::string certain_text(const std::string& pattern);
/// Returns the plain words of a regular expression in lower case, including those inside groups.
std::vector<std::string> words_of_pattern(const std::string& pattern);

/// A regular expression with a group for a value, searched in the lines of a job.
class MeasurePattern {
 public:
  /// Throws std::regex_error.
  explicit MeasurePattern(const std::string& pattern);

  using Found = Pattern::Match;
  /// Returns the first match. `line`: as from LineSplitter, cut.
  std::optional<Found> find(const std::string& line);
  unsigned groups() const { return pattern_.groups(); }
  /// Returns how many lines were not searched to their end, because that took too long.
  int lines_given_up() const { return limit_.given_up; }

  /// Returns how many characters of the pattern's words occur in the line; digits make a line slightly closer.
  std::size_t closeness(const std::string& line) const;

 private:
  Pattern pattern_;
  SearchLimit limit_;
  std::string certain_;
  std::vector<std::string> words_;
};

/// The lines that most resemble a pattern that matched none of them.
class ClosestLines {
 public:
  static constexpr std::size_t kShown = 3;

  void add(const MeasurePattern& pattern, const std::string& line);
  /// Returns the closest lines first; none without any similarity to the pattern.
  std::vector<std::string> lines() const;

 private:
  struct Entry {
    std::size_t closeness;
    std::string line;
  };
  std::vector<Entry> entries_;
  std::size_t looked_at_ = 0;
};

}  // namespace krigtune::trial
