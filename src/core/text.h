#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// The nearest candidate by Damerau-Levenshtein distance within a third of the word's length; one edit is always near
/// enough, two edits of a word of three letters make another word ("xml" is not "md"). Where none is that near, the
/// first candidate that begins as the word does, or as which the word begins ("micro" of "micro_batch"). Else "".
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean 'x'?" when there is a near one, else "known: a, b, c".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// ASCII letters in lower case: ids are compared so.
std::string lower_case(std::string_view text);

/// Without blanks, tabs and ends of lines at either end.
std::string trimmed(std::string_view text);

/// Whether `text` is one of `words`, an array or a list of texts.
template <class Words>
bool is_one_of(std::string_view text, const Words& words) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// The words as they would be typed into a shell: those that it would change are quoted.
std::string shell_line(const std::vector<std::string>& words);

/// The shortest decimal text that reads back as the same double; integers below 1e15 without exponent or point.
std::string number_text(double value);

}  // namespace krigtune
