#pragma once
#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

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

  struct Found {
    std::size_t begin = 0;  ///< start of the match in the line
    std::size_t length = 0;
    std::size_t value_begin = 0;  ///< start of the group, or of the match if there is no group
    std::string value;
  };
  /// Returns the first match. `line`: as from LineSplitter, cut.
  std::optional<Found> find(const std::string& line) const;
  unsigned groups() const { return static_cast<unsigned>(regex_.mark_count()); }

  /// Returns how many characters of the pattern's words occur in the line; digits make a line slightly closer.
  std::size_t closeness(const std::string& line) const;

 private:
  std::regex regex_;
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
