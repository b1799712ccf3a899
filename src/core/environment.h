#pragma once
#include <optional>
#include <string>

namespace krigtune {

/// Returns the value of this process's environment variable; empty if it is not set. One that is set to nothing has
/// the value "".
std::optional<std::string> environment_variable(const std::string& name);

}  // namespace krigtune
