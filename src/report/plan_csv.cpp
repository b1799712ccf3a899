#include "krigtune/core/csv.h"
#include "krigtune/report/fields.h"
#include "krigtune/report/tables_csv.h"

namespace krigtune {

std::string plan_header(const std::vector<std::string>& columns) {
  std::vector<std::string> row = columns;
  append(row, {"predicted_value", "predicted_step_time_s", "predicted_memory_bytes", "memory_verdict",
               "probability_fits", "bottleneck"});
  return csv_line(row);
}

std::string plan_line(const Configuration& configuration, const Forecast& forecast,
                      const std::vector<std::string>& columns) {
  std::vector<std::string> row = fields(configuration, columns);
  const std::optional<StepCost>& cost = forecast.cost;
  append(row, {field(forecast.value), field(cost ? std::optional(cost->step_time_s) : std::nullopt)});
  if (const std::optional<MemoryVerdict>& memory = forecast.memory) {
    append(row, {field(std::optional(memory->predicted)), to_string(memory->verdict),
                 field(std::optional(memory->probability_fits))});
  } else {
    append(row, {"", "", ""});
  }
  row.emplace_back(cost ? to_string(cost->bottleneck()) : "");
  return csv_line(row);
}

}  // namespace krigtune
