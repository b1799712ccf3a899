// Regular expressions must be searched in millions of lines. libstdc++'s polynomial matcher takes about 100 ns per
// character and state, and a search for plain text a thousandth of that. So each pattern knows a text that all its
// matches contain, and lines without it are skipped. The pattern's words also show which lines came closest if none
// matched.
#include "trial/measure_pattern.h"

#include <algorithm>
#include <array>

#include "core/text.h"
#include "trial/failure_text.h"

namespace krigtune::trial {
namespace {

constexpr std::string_view kClasses = "dDsSwWbBnrtfv0cxu";
constexpr std::size_t kShortestWord = 2;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

// Parses a regular expression and collects its runs of plain characters.
class PlainRuns {
 public:
  explicit PlainRuns(const std::string& pattern) : pattern_(pattern) {
    for (; at_ < pattern_.size(); ++at_) step();
    end_run();
  }

  bool alternatives = false;              // outside groups, so no run is certain
  std::vector<std::string> outside = {};  // outside groups
  std::vector<std::string> everywhere = {};

 private:
  void step() {
    const char c = pattern_[at_];
    switch (c) {
      case '\\':
        return escape();
      case '[':
        return skip_class();
      case '(':
        end_run();
        ++depth_;
        if (pattern_.compare(at_ + 1, 1, "?") == 0) at_ += 2;  // (?: (?= (?!
        return;
      case ')':
        end_run();
        depth_ -= depth_ > 0 ? 1 : 0;
        return;
      case '|':
        end_run();
        alternatives = alternatives || depth_ == 0;
        return;
      case '*':
      case '?':
      case '{':
        if (!run_.empty()) run_.pop_back();  // it is optional
        end_run();
        if (c == '{') at_ = std::min(pattern_.find('}', at_), pattern_.size() - 1);
        return;
      case '.':
      case '^':
      case '$':
      case '+':
        return end_run();
      default:
        run_ += c;
    }
  }

  void escape() {
    const char next = at_ + 1 < pattern_.size() ? pattern_[++at_] : '\\';
    if (kClasses.find(next) == std::string_view::npos && (next < '1' || next > '9')) {
      run_ += next;
      return;
    }
    end_run();
    constexpr std::size_t kHexDigits = 2, kUnicodeDigits = 4;
    if (next == 'x') at_ += kHexDigits;
    if (next == 'u') at_ += kUnicodeDigits;
    if (next == 'c') ++at_;
  }

  void skip_class() {
    end_run();
    for (++at_; at_ < pattern_.size() && pattern_[at_] != ']'; ++at_) {
      if (pattern_[at_] == '\\') ++at_;
      if (pattern_.compare(at_, 2, "[:") == 0) at_ = std::min(pattern_.find(":]", at_), pattern_.size() - 2) + 1;
    }
    // Implementations read "[]x]" and "[^]x]" in different ways.
    const bool is_empty = at_ > 0 && (pattern_[at_ - 1] == '[' || pattern_[at_ - 1] == '^');
    alternatives = alternatives || is_empty;
  }

  void end_run() {
    if (run_.empty()) return;
    if (depth_ == 0) outside.push_back(run_);
    everywhere.push_back(run_);
    run_.clear();
  }

  const std::string& pattern_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string run_;
};

}  // namespace

std::string certain_text(const std::string& pattern) {
  const PlainRuns runs(pattern);
  if (runs.alternatives || runs.outside.empty()) return "";
  return *std::max_element(runs.outside.begin(), runs.outside.end(),
                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
}

std::vector<std::string> words_of_pattern(const std::string& pattern) {
  std::vector<std::string> words;
  for (const std::string& run : PlainRuns(pattern).everywhere) {
    for (std::size_t at = 0; at < run.size();) {
      const auto begin = std::find_if(run.begin() + static_cast<std::ptrdiff_t>(at), run.end(), is_letter_or_digit);
      const auto end = std::find_if_not(begin, run.end(), is_letter_or_digit);
      std::string word = lower_case(std::string(begin, end));
      if (word.size() >= kShortestWord && !is_one_of(word, words)) words.push_back(std::move(word));
      at = static_cast<std::size_t>(end - run.begin());
    }
  }
  return words;
}

MeasurePattern::MeasurePattern(const std::string& pattern)
    : pattern_(pattern), certain_(certain_text(pattern)), words_(words_of_pattern(pattern)) {}

std::optional<MeasurePattern::Found> MeasurePattern::find(const std::string& line) {
  if (line.find(certain_) == std::string::npos) return std::nullopt;
  return pattern_.search(line, limit_);
}

namespace {

constexpr double kOtherSpelling = 0.8;

bool has_digit(const std::string& line) { return line.find_first_of("0123456789") != std::string::npos; }

// Returns the words of at least three letters; shorter ones begin too many others.
std::vector<std::string> words_of_line(const std::string& lower) {
  constexpr std::size_t kShortest = 3;
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower + " ") {
    if (c >= 'a' && c <= 'z') {
      word += c;
      continue;
    }
    if (word.size() >= kShortest) words.push_back(word);
    word.clear();
  }
  return words;
}

bool is_progress_bar(const std::string& line) { return line.find("%|") != std::string::npos; }

bool reports_a_step(const std::string& line) {
  const std::string lower = lower_case(line);
  constexpr std::array kWords = {"step", "iter", "epoch", "loss"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

double MeasurePattern::likeness(const std::string& line) const {
  const std::string lower = lower_case(line);
  std::optional<std::vector<std::string>> others;
  double found = 0.0;
  double all = 0.0;
  for (const std::string& word : words_) {
    const auto size = static_cast<double>(word.size());
    all += size;
    if (lower.find(word) != std::string::npos) {
      found += size;
      continue;
    }
    if (!others) others = words_of_line(lower);
    if (!nearest_name(word, *others).empty()) found += kOtherSpelling * size;
  }
  return all > 0.0 ? found / all : 0.0;
}

void UnmatchedLines::add(const MeasurePattern& pattern, const std::string& line) {
  constexpr std::size_t kMostLookedAt = 100'000;
  constexpr std::size_t kMostForms = 1000;
  constexpr double kAlike = 0.5;
  if (++looked_at_ > kMostLookedAt) return;
  const double likeness = pattern.likeness(line);
  keep_if_close(likeness, line);
  if (!has_digit(line) || is_progress_bar(line)) return;
  const std::string form = without_numbers(line);
  if (forms_.size() == kMostForms && !forms_.contains(form)) return;
  const std::int64_t count = ++forms_[form];
  if (likeness >= kAlike) alike_ = std::max(alike_, count);
  if (reports_a_step(form)) steps_ = std::max(steps_, count);
}

void UnmatchedLines::keep_if_close(double likeness, const std::string& line) {
  constexpr std::size_t kMostShownBytes = 300;
  constexpr double kWithNumber = 0.01;  // a number makes a line slightly closer
  if (likeness == 0.0) return;
  const double closeness = has_digit(line) ? likeness + kWithNumber : likeness;
  const bool is_full = entries_.size() == kShown;
  if (is_full && closeness <= entries_.back().likeness) return;
  if (is_full) entries_.pop_back();
  const auto place =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.likeness < closeness; });
  entries_.insert(place, {closeness, printable(line).substr(0, kMostShownBytes)});
}

std::vector<std::string> UnmatchedLines::closest() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_) lines.push_back(entry.line);
  return lines;
}

}  // namespace krigtune::trial
