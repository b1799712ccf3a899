#pragma once
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace krigtune {

/// Parses TOML. `source` names the text in errors, unless it is empty. Throws UserError with the line; also for keys of
/// a thousand parts, over whose tables any walk would overflow the stack.
toml::table parse_toml(std::string_view text, const std::string& source);

}  // namespace krigtune
