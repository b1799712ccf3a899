#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/compare.h"
#include "forecast/forecast.h"
#include "insight/predictions.h"

namespace krigtune::report {

// CSV files with fixed headers, line by line: a whole space need not stand in memory as rows.
// `columns` are those of the space.

/// predictions.csv, whose ranks are known once the last row is.
class PredictionsCsv {
 public:
  PredictionsCsv(std::vector<std::string> columns, bool maximize);
  void add(const insight::PredictionRow& row);
  std::size_t rows() const { return lines_.size(); }
  /// Numbers have six significant digits. `median` is the same as `mean`, which stays for one version; `rank` is 1
  /// where the median is the best, and empty where nothing is predicted or memory rules the configuration out.
  std::string text() const;

 private:
  std::vector<std::string> columns_;
  bool maximize_;
  std::vector<std::string> lines_;                      // without the rank
  std::vector<std::pair<double, std::size_t>> ranked_;  // median, index of the line
};

/// The file of `plan --csv`. What is not predicted is empty.
std::string plan_header(const std::vector<std::string>& columns);
std::string plan_line(const space::Configuration& configuration, const forecast::Forecast& forecast,
                      const std::vector<std::string>& columns);

/// comparison.csv, comparison_summary.csv and comparison_pairs.csv, whole.
std::string comparison_csv(const compare::Comparison& comparison);
std::string comparison_summary_csv(const compare::Comparison& comparison);
std::string comparison_pairs_csv(const compare::Comparison& comparison);

}  // namespace krigtune::report
