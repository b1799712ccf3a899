#pragma once
#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// Parses the documents of a YAML text. `source` names the text in errors, unless it is empty. Throws UserError with
/// the line; also for text nested more than kDeepestNesting (core/json.h) deep, and where aliases of aliases make it
/// too large.
std::vector<YAML::Node> parse_yaml(std::string_view text, const std::string& source);

}  // namespace krigtune
