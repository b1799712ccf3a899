#pragma once
#include <string>
#include <vector>

#include "krigtune/core/json.h"
#include "krigtune/space/parameter.h"

namespace krigtune {

/// {"min", "max", "type", "scale", "steps", "when"}
void read_range(JsonObject& object, Parameter& parameter);

/// "scale", "linear" where it is not given.
std::string read_scale(JsonObject& object, const std::vector<std::string>& known);
/// "when", parsed.
void read_when(JsonObject& object, Parameter& parameter);

}  // namespace krigtune
