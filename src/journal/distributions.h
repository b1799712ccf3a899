#pragma once
#include <optional>
#include <string>

#include "core/json.h"
#include "space/parameter.h"

namespace krigtune::journal {

/// Returns the Optuna distribution under which a parameter is journalled, in the long form {"name": ..., "attributes":
/// {...}}, the only one that every reader knows.
///
/// Optuna drops a parameter of a trial if its kind, choices or log flag differ from those in earlier trials of the
/// study; only the bounds of numbers may change. So the first trial of the study decides. Lists (numbers, booleans,
/// texts) become CategoricalDistribution, ranges IntDistribution or FloatDistribution. If the first value to be written
/// is not in the list, a list of numbers becomes an IntDistribution or FloatDistribution over both, and any other list
/// gets the value as one more choice. A continuous range becomes a FloatDistribution; the result is empty if its first
/// value is not a number.
std::optional<Json> first_distribution(const space::Parameter& parameter, const space::Value& first);

/// Returns the distribution unchanged if it contains `value`, otherwise with wider bounds. Empty if its kind cannot
/// contain the value (a new choice, a fraction among integers): the value is then recorded in the trial's configuration
/// only.
std::optional<Json> widened(Json distribution, const space::Value& value);

/// Returns Optuna's internal number: the index of a choice, or the number itself. `distribution` must contain the
/// value.
Json internal_value(const Json& distribution, const space::Value& value);

/// Returns the value that Optuna shows for an internal number. Empty if no configuration can have that value.
std::optional<space::Value> external_value(const Json& distribution, double internal);

/// Reads a distribution in the long form. Empty if the text is not one.
std::optional<Json> read_distribution(const std::string& text);

/// Returns whether Optuna accepts both distributions for one parameter of one study.
bool are_compatible(const Json& a, const Json& b);

}  // namespace krigtune::journal
