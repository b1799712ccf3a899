#pragma once
#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune::trial {

/// Text that each match of a regular expression (ECMAScript) holds: its longest run of plain characters outside groups
/// and alternatives. Empty: there is none that is sure. Lines without it need no regular expression.
std::string certain_text(const std::string& pattern);
/// The plain words of a regular expression in lower case, those within groups too.
std::vector<std::string> words_of_pattern(const std::string& pattern);

/// A regular expression with a group that holds a value, looked for in the lines of a job.
class MeasurePattern {
 public:
  /// Throws std::regex_error.
  explicit MeasurePattern(const std::string& pattern);

  struct Found {
    std::size_t begin = 0;  ///< of the match in the line
    std::size_t length = 0;
    std::size_t value_begin = 0;  ///< of the group, or of the match where there is no group
    std::string value;
  };
  /// The first match. `line`: as LineSplitter gives it, cut.
  std::optional<Found> find(const std::string& line) const;
  unsigned groups() const { return static_cast<unsigned>(regex_.mark_count()); }

  /// How much of the pattern's words the line has, in characters; a line with digits is a little closer.
  std::size_t closeness(const std::string& line) const;

 private:
  std::regex regex_;
  std::string certain_;
  std::vector<std::string> words_;
};

/// The lines that look most like what a pattern was written for, where it matched none.
class ClosestLines {
 public:
  static constexpr std::size_t kShown = 3;

  void add(const MeasurePattern& pattern, const std::string& line);
  /// The closest first; none that has nothing in common with the pattern.
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
