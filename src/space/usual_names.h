#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "space/configuration.h"
#include "space/parameter.h"

namespace krigtune::space {

/// Frameworks and launchers have other names for the well-known parameters: tp, mbs (docs/parameters.md lists them).
/// What is computed about a training step reads them as the usual names. If the usual name is present too, it counts;
/// of several other names of one parameter, the first in the list of docs/parameters.md does.

/// Returns a value under another name as the well-known parameter `name` has it: true as "full", FULL_SHARD as 3. Empty
/// if it has no such value.
std::optional<Value> usual_value(std::string_view name, const Value& value);

/// Returns the configuration with usual names in place of others, and with values as the usual names have them:
/// gradient_checkpointing=true becomes activation_checkpointing=full. Names that do not count stay as they are, and so
/// do values without a meaning. Empty if nothing has another name.
std::optional<Configuration> with_usual_names(const Configuration& configuration);
/// Returns the same, or a copy of the configuration if nothing has another name. Code that runs for every candidate
/// calls the function above, which copies nothing then.
Configuration in_usual_names(const Configuration& configuration);

/// Returns the parameter that is read as the well-known one: that of this name, or else of another of its names with
/// values that it may have as well. nullptr if there is none.
const Parameter* find_usual(const std::vector<Parameter>& parameters, std::string_view known);

}  // namespace krigtune::space
