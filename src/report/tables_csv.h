#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/compare.h"
#include "forecast/forecast.h"
#include "insight/predictions.h"

namespace krigtune::report {

// CSV files with fixed headers, written line by line, so that a whole space need not be in memory as rows. `columns`
// are those of the space.

/// predictions.csv; the ranks are known only after the last row.
class PredictionsCsv {
 public:
  /// `others`: the metrics of the further objectives, each of which has the columns METRIC_median, METRIC_lower_95,
  /// METRIC_upper_95 and METRIC_observed after the rank.
  PredictionsCsv(std::vector<std::string> columns, bool maximize, std::vector<std::string> others = {});
  void add(const insight::PredictionRow& row);
  std::size_t rows() const { return lines_.size(); }
  /// Returns the file; numbers have six significant digits. `median` and `mean` are equal; `mean` is kept for one more
  /// version. `rank` is 1 for the best median, and empty if nothing is predicted or if memory rules the configuration
  /// out.
  std::string text() const;

 private:
  std::vector<std::string> columns_;
  bool maximize_;
  std::vector<std::string> others_;
  std::vector<std::string> lines_;                      // without the rank and what follows it
  std::vector<std::string> ends_;                       // what follows the rank
  std::vector<std::pair<double, std::size_t>> ranked_;  // median, index of the line
};

/// The file of `plan --csv`. Values that are not predicted are empty.
std::string plan_header(const std::vector<std::string>& columns);
std::string plan_line(const space::Configuration& configuration, const forecast::Forecast& forecast,
                      const std::vector<std::string>& columns);

/// Return the whole files comparison.csv, comparison_summary.csv and comparison_pairs.csv.
std::string comparison_csv(const compare::Comparison& comparison);
std::string comparison_summary_csv(const compare::Comparison& comparison);
std::string comparison_pairs_csv(const compare::Comparison& comparison);

}  // namespace krigtune::report
