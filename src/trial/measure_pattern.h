#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
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

  /// Returns how much of the pattern's words is in the line, from 0 to 1. A word counts in part if the line has an
  /// abbreviation of it or another spelling ("tok" for "tokens").
  double likeness(const std::string& line) const;

 private:
  Pattern pattern_;
  SearchLimit limit_;
  std::string certain_;
  std::vector<std::string> words_;
};

/// The lines that a pattern was searched in while it has matched none. They show which line was meant, and after a
/// while that the pattern will never match: a job that trains prints lines of the same form again and again.
class UnmatchedLines {
 public:
  static constexpr std::size_t kShown = 3;

  void add(const MeasurePattern& pattern, const std::string& line);
  /// Returns the lines that resemble the pattern most, the closest first; none without any similarity to it.
  std::vector<std::string> closest() const;
  /// Returns how many lines of one form, which differ only in their numbers, resemble the pattern. States of progress
  /// bars are not counted.
  std::int64_t alike() const { return alike_; }
  /// Returns the same for lines that report a step of the training: they name a step, an iteration, an epoch or a loss.
  std::int64_t steps() const { return steps_; }

 private:
  struct Entry {
    double likeness;
    std::string line;
  };
  void keep_if_close(double likeness, const std::string& line);

  std::vector<Entry> entries_;
  std::size_t looked_at_ = 0;
  std::map<std::string, std::int64_t> forms_;  // of lines with numbers
  std::int64_t alike_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace krigtune::trial
