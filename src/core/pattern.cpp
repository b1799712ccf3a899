#include "core/pattern.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/clock.h"

namespace krigtune {
namespace {

bool is_lookahead(const std::string& text, std::size_t at) {
  return text.compare(at, 3, "(?=") == 0 || text.compare(at, 3, "(?!") == 0;
}

// Walks over an expression; what it counts is right for valid ones, and std::regex refuses the others.
class States {
 public:
  explicit States(const std::string& text) : text_(text) {
    for (; at_ < text_.size(); ++at_) step();
  }

  std::size_t count() const { return open_.front(); }
  int lookahead_depth() const { return deepest_; }

 private:
  void step() {
    switch (text_[at_]) {
      case '(':
        lookaheads_.push_back(is_lookahead(text_, at_));
        deepest_ = std::max(deepest_, static_cast<int>(std::count(lookaheads_.begin(), lookaheads_.end(), true)));
        open_.push_back(1);
        return;
      case ')':
        if (open_.size() == 1) return;
        last_ = open_.back();
        open_.pop_back();
        lookaheads_.pop_back();
        return add(last_);
      case '{':
        return repeat();
      case '[':
        at_ = std::min(text_.find(']', at_ + 2), text_.size() - 1);
        break;
      case '\\':
        ++at_;
        break;
      default:
        break;
    }
    last_ = 1;
    add(last_);
  }

  // "{n}", "{m,}" and "{m,n}" repeat the last character or group.
  void repeat() {
    std::size_t most = 1;
    for (; at_ + 1 < text_.size() && text_[at_ + 1] != '}'; ++at_) {
      std::size_t number = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_ + 1, text_.data() + text_.size(), number);
      if (error == std::errc::result_out_of_range) number = kMost;
      most = std::max(most, number);
    }
    ++at_;
    const std::size_t repeated = std::min(kMost, last_ * std::min(most, kMost));
    add(repeated - std::min(repeated, last_));
    last_ = repeated;
  }

  void add(std::size_t states) { open_.back() = std::min(kMost, open_.back() + states); }

  static constexpr std::size_t kMost = Pattern::kMostStates + 1;
  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t last_ = 1;                 // states of what a repetition would repeat
  std::vector<std::size_t> open_ = {0};  // of each open group
  std::vector<bool> lookaheads_;
  int deepest_ = 0;
};

std::regex compile(const std::string& text) {
  const States states(text);
  if (states.count() > Pattern::kMostStates || states.lookahead_depth() > 1) {
    throw std::regex_error(std::regex_constants::error_complexity);
  }
#ifdef __GLIBCXX__
  return std::regex(text, std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
#else
  return std::regex(text);
#endif
}

}  // namespace

std::string trouble_with_pattern(const std::regex_error& error) {
  namespace codes = std::regex_constants;
  const std::pair<codes::error_type, const char*> kWords[] = {
      {codes::error_paren, "a ( has no ), a ) has no (, or a *, + or ? has nothing before it"},
      {codes::error_brack, "a [ has no ]"},
      {codes::error_brace, "a { has no }; a brace that is meant is \\{"},
      {codes::error_badbrace, "braces need a number, as in {3}; a brace that is meant is \\{"},
      {codes::error_range, "a range in [ ] is backwards, as z-a is"},
      {codes::error_escape, "a \\ is before a letter that it gives no meaning, or at the end"},
      {codes::error_badrepeat, "a *, + or ? has nothing before it; one that is meant is \\*, \\+ or \\?"},
      {codes::error_backref, "it has a back-reference, such as \\1"},
      {codes::error_ctype, "a [: :] names no class of characters"},
      {codes::error_collate, "a [. .] names no character"},
      {codes::error_complexity, "it would take too long to search"}};
  for (const auto& [code, words] : kWords) {
    if (code == error.code()) return words;
  }
  return error.what();
}

std::size_t states_of_pattern(const std::string& text) { return States(text).count(); }

Pattern::Pattern(const std::string& text)
    : regex_(compile(text)), states_(states_of_pattern(text)), looks_ahead_(States(text).lookahead_depth() > 0) {}

bool Pattern::matches(const std::string& text) const {
  SearchLimit limit;
  return search(text, limit).has_value();
}

std::optional<Pattern::Match> Pattern::search(const std::string& text, SearchLimit& limit) const {
  if (limit.left <= 0) {
    ++limit.given_up;
    return std::nullopt;
  }
  if (looks_ahead_ && text.size() > kMostWithLookaheads) return search(text.substr(0, kMostWithLookaheads), limit);
  std::smatch found;
  std::size_t begin = 0;
  // Within so many steps, about a tenth of a second, no clock is needed.
  constexpr std::size_t kFewSteps = 1'000'000;
  if (text.size() * text.size() <= kFewSteps / std::max<std::size_t>(states_, 1)) {
    if (!std::regex_search(text, found, regex_)) return std::nullopt;
  } else {
    constexpr std::size_t kPlacesPerLook = 16;
    const double until_s = thread_processor_time_s() + limit.most_s;
    const auto matches_at = [&](std::size_t place) {
      const auto flags = std::regex_constants::match_continuous |
                         (place > 0 ? std::regex_constants::match_prev_avail : std::regex_constants::match_default);
      return std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(place), text.end(), found, regex_, flags);
    };
    while (!matches_at(begin)) {
      if (++begin > text.size()) return std::nullopt;
      if (begin % kPlacesPerLook == 0 && thread_processor_time_s() >= until_s) {
        --limit.left;
        ++limit.given_up;
        return std::nullopt;
      }
    }
  }
  const std::size_t group = found.size() > 1 && found[1].matched ? 1 : 0;
  return Match{begin + static_cast<std::size_t>(found.position(0)), static_cast<std::size_t>(found.length(0)),
               begin + static_cast<std::size_t>(found.position(group)), found.str(group)};
}

}  // namespace krigtune
