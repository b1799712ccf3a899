// Regular expressions that users write, on text that their programs print. std::regex by default backtracks: "(x+)+y"
// would search a line of x for ever, and recurse until the stack overflows. libstdc++ also has a matcher that follows
// all alternatives at once, which takes at most n^2 m steps for n characters and an expression of m states. This class
// uses that matcher, refuses expressions with too many states, and gives a search up once it has taken too long.
#pragma once
#include <cstddef>
#include <optional>
#include <regex>
#include <string>

namespace krigtune {

/// How long the searches of one reader may take. A search that reaches `most_s` finds nothing; after `left` such
/// searches nothing is searched at all.
struct SearchLimit {
  double most_s = 0.1;  ///< processor time of one search
  int left = 20;
  int given_up = 0;  ///< how many searches found nothing because of these limits
};

/// A regular expression (ECMAScript, without back-references). If it has look-aheads, each of which may read the whole
/// text again, only the first kMostWithLookaheads characters of a text are searched.
class Pattern {
 public:
  static constexpr std::size_t kMostStates = 4000;  ///< about the characters, with counted repetitions written out

  static constexpr std::size_t kMostWithLookaheads = 1000;

  /// Throws std::regex_error if the text is no such expression, or has more than kMostStates states or look-aheads
  /// within look-aheads.
  explicit Pattern(const std::string& text);

  struct Match {
    std::size_t begin = 0;
    std::size_t length = 0;
    std::size_t value_begin = 0;  ///< of the first group, or of the match if there is no group
    std::string value;
  };
  /// Returns the first match.
  std::optional<Match> search(const std::string& text, SearchLimit& limit) const;
  /// Returns whether a text of a few lines matches, within the default limit.
  bool matches(const std::string& text) const;
  unsigned groups() const { return static_cast<unsigned>(regex_.mark_count()); }

 private:
  std::regex regex_;
  std::size_t states_;
  bool looks_ahead_;
};

/// Returns in words why a text is no expression: "a [ has no ]".
std::string trouble_with_pattern(const std::regex_error& error);

/// Returns how many states an expression has, roughly and at most kMostStates + 1: one for each character, as often as
/// counted repetitions repeat it.
std::size_t states_of_pattern(const std::string& text);

}  // namespace krigtune
