#include "krigtune/core/csv.h"
#include "krigtune/report/fields.h"
#include "krigtune/report/tables_csv.h"

namespace krigtune {

std::string predictions_header(const std::vector<std::string>& columns) {
  std::vector<std::string> row = columns;
  append(row, {"mean", "stddev", "lower_95", "upper_95", "expected_improvement", "log_expected_improvement",
               "probability_feasible", "predicted_memory_bytes", "memory_feasible", "observed", "status"});
  return csv_line(row);
}

std::string prediction_line(const PredictionRow& row, const std::vector<std::string>& columns) {
  std::vector<std::string> line = fields(row.configuration, columns);
  append(line,
         {field(row.mean), field(row.stddev), field(row.lower_95), field(row.upper_95), field(row.expected_improvement),
          field(row.log_expected_improvement), field(std::optional(row.probability_feasible)),
          field(row.predicted_memory), field(row.memory_feasible), field(row.observed), row.status});
  return csv_line(line);
}

}  // namespace krigtune
