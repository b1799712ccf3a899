#pragma once
#include <string>
#include <utility>
#include <vector>

namespace krigtune {

/// {config}, {result}, {dir} and {trial} in a word of a command. "{{" stands for a brace; a brace that is not followed
/// by a name and "}" stands for itself, so that JSON and awk programs need nothing.
using Placeholders = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> known_placeholders();

/// Names in braces that are none of the known ones.
std::vector<std::string> unknown_placeholders(const std::string& word);

std::string fill_in(const std::string& word, const Placeholders& values);

}  // namespace krigtune
