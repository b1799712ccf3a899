#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "forecast/forecast.h"
#include "insight/predictions.h"

namespace krigtune::report {

// CSV files with fixed headers, line by line: a whole space need not stand in memory as rows.
// `columns` are those of the space.

/// predictions.csv
std::string predictions_header(const std::vector<std::string>& columns);
std::string prediction_line(const insight::PredictionRow& row, const std::vector<std::string>& columns);

/// The file of `plan --csv`. What is not predicted is empty.
std::string plan_header(const std::vector<std::string>& columns);
std::string plan_line(const space::Configuration& configuration, const forecast::Forecast& forecast,
                      const std::vector<std::string>& columns);

/// comparison.csv, comparison_summary.csv and comparison_pairs.csv, whole.
std::string comparison_csv(const compare::Comparison& comparison);
std::string comparison_summary_csv(const compare::Comparison& comparison);
std::string comparison_pairs_csv(const compare::Comparison& comparison);

}  // namespace krigtune::report
