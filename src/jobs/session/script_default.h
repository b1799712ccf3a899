#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace krigtune::jobs {

/// Returns the default of a flag as a script of Python declares it to argparse, click or absl, without quotes: "4" of
/// `parser.add_argument("--mbs", type=int, default=4)`. Dashes and underscores inside the flag are equivalent. Empty
/// if the script declares no such flag, if its default is no number or text, or if two declarations differ.
std::optional<std::string> default_in_script(std::string_view script, std::string_view flag);

}  // namespace krigtune::jobs
