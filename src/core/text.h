#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// Returns the candidates that a misspelt word may mean, the likeliest first. The nearest one by Damerau-Levenshtein
/// distance, with or without what is no letter or digit ("llama2-13b" is "llama-2-13b"), if it is within a third of the
/// word's length; one edit is always near enough, and two edits of a word of three letters make another word ("xml" is
/// not "md"). If none is that near, those that begin as the word does, or with which the word begins ("h100" of
/// "h100-80gb"); if there is none either, those that have all pieces of the word ("ib-400" of "ib-ndr-400").
std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& candidates);

/// Returns the first of nearest_names, or "".
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// Returns "did you mean 'x'?" with at most three near names, or "known: a, b, c" if there is none.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// Converts ASCII letters to lower case. Ids are compared in this form.
std::string lower_case(std::string_view text);

/// Removes blanks, tabs and line breaks from both ends.
std::string trimmed(std::string_view text);

/// Returns whether `text` is one of `words`, an array or a list of texts.
template <class Words>
bool is_one_of(std::string_view text, const Words& words) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// Joins the words to a line for a shell. Words that the shell would change are quoted.
std::string shell_line(const std::vector<std::string>& words);

/// Returns the shortest decimal text that reads back as the same double. Integers below 1e15 have no exponent and no
/// point.
std::string number_text(double value);

/// Returns "1.04 trillion", "8.03 billion", "124 million", "4096".
std::string count_text(double count);

/// Returns the count with its noun: "1 trial", "0 trials", "3 trials".
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace krigtune
