#include "core/formats/toml.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace krigtune {
namespace {

// The library bounds the depth of arrays and inline tables, but "a.b.c = 1" makes a table for each part of the key.
void check_keys(std::string_view text, const std::string& prefix) {
  constexpr int kMostParts = 1000;
  int dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("=,\n{}[]#").find(text[i]) != std::string_view::npos) dots = 0;
    if (text[i] != '.' || ++dots < kMostParts) continue;
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n') + 1;
    throw UserError(fmt::format("{}line {}: a key of more than {} parts", prefix, line, kMostParts), "shorten it");
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& source) {
  const std::string prefix = source.empty() ? "" : source + ": ";
  check_keys(text, prefix);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw UserError(
        fmt::format("{}invalid TOML at line {}: {}", prefix, error.source().begin.line, error.description()),
        "fix that line");
  }
}

}  // namespace krigtune
