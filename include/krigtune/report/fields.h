#pragma once
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/units.h"
#include "krigtune/space/configuration.h"
#include "krigtune/tuner/strategy.h"

namespace krigtune {

/// Fields of CSV tables: what is not available is empty, booleans are true and false, integers have no exponent.
std::string field(std::optional<double> number);
std::string field(std::optional<Bytes> bytes);
std::string field(std::optional<bool> flag);
/// The configuration's values in the order of the columns.
std::vector<std::string> fields(const Configuration& configuration, const std::vector<std::string>& columns);
void append(std::vector<std::string>& row, const std::vector<std::string>& more);

/// A number of an ok trial's result. Empty when it is not ok or has none of that name.
std::optional<double> metric_of(const Trial& trial, const std::string& name);
/// What an ok trial measured.
std::optional<Bytes> peak_memory_of(const Trial& trial);

}  // namespace krigtune
