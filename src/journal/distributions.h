#pragma once
#include <optional>
#include <string>

#include "core/json.h"
#include "space/parameter.h"

namespace krigtune::journal {

/// The kind of Optuna's distribution that a parameter is journalled under. Its JSON is in the long form
/// {"name": ..., "attributes": {...}}, the only one that every reader knows.
///
/// Optuna drops a parameter of a trial whose kind, choices or log flag differ from those in earlier trials of the
/// study; only the bounds of numbers may change. So the first trial of the study decides: lists (numbers, booleans,
/// texts) are CategoricalDistribution, ranges are IntDistribution or FloatDistribution; a list of numbers whose first
/// value to be written lies outside is an IntDistribution or FloatDistribution over both, a list of other values gets
/// it as one more choice. A continuous range is a FloatDistribution; empty where the first value is then no number.
std::optional<Json> first_distribution(const space::Parameter& parameter, const space::Value& first);

/// The distribution that holds `value`: as it is, or with wider bounds. Empty where this kind cannot hold it (a choice
/// that was not foreseen, a fraction among integers): such a value stands in the trial's configuration only.
std::optional<Json> widened(Json distribution, const space::Value& value);

/// Optuna's internal number: the index of a choice, or the number itself. `distribution` holds the value.
Json internal_value(const Json& distribution, const space::Value& value);

/// The value that Optuna shows for an internal number. Empty where it is none that a configuration can have.
std::optional<space::Value> external_value(const Json& distribution, double internal);

/// A distribution in the long form. Empty where the text is none.
std::optional<Json> read_distribution(const std::string& text);

/// Whether Optuna lets a parameter have both in one study.
bool are_compatible(const Json& a, const Json& b);

}  // namespace krigtune::journal
