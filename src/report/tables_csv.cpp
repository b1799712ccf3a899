#include "report/tables_csv.h"

#include "core/csv.h"
#include "report/labels.h"

namespace krigtune::report {

std::string plan_header(const std::vector<std::string>& columns) {
  std::vector<std::string> row = columns;
  append(row, {"predicted_value", "predicted_step_time_s", "predicted_memory_bytes", "memory_verdict",
               "probability_fits", "bottleneck"});
  return csv_line(row);
}

std::string plan_line(const space::Configuration& configuration, const forecast::Forecast& forecast,
                      const std::vector<std::string>& columns) {
  std::vector<std::string> row = fields(configuration, columns);
  const std::optional<cost::StepCost>& cost = forecast.cost;
  append(row, {field(forecast.value), field(cost ? std::optional(cost->step_time_s) : std::nullopt)});
  if (const std::optional<plan::MemoryVerdict>& memory = forecast.memory) {
    append(row, {field(std::optional(memory->predicted)), plan::to_string(memory->verdict),
                 field(std::optional(memory->probability_fits))});
  } else {
    append(row, {"", "", ""});
  }
  row.emplace_back(cost ? cost::to_string(cost->bottleneck()) : "");
  return csv_line(row);
}

std::string predictions_header(const std::vector<std::string>& columns) {
  std::vector<std::string> row = columns;
  append(row, {"mean", "stddev", "lower_95", "upper_95", "expected_improvement", "log_expected_improvement",
               "probability_feasible", "predicted_memory_bytes", "memory_feasible", "observed", "status"});
  return csv_line(row);
}

std::string prediction_line(const insight::PredictionRow& row, const std::vector<std::string>& columns) {
  std::vector<std::string> line = fields(row.configuration, columns);
  append(line,
         {field(row.mean), field(row.stddev), field(row.lower_95), field(row.upper_95), field(row.expected_improvement),
          field(row.log_expected_improvement), field(std::optional(row.probability_feasible)),
          field(row.predicted_memory), field(row.memory_feasible), field(row.observed), row.status});
  return csv_line(line);
}

}  // namespace krigtune::report
