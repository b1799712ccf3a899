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

std::string plan_line(const Configuration& configuration, const std::optional<MemoryVerdict>& memory,
                      const std::vector<std::string>& columns) {
  const std::string unknown;  // what only a cost model could tell
  std::vector<std::string> row = fields(configuration, columns);
  append(row, {unknown, unknown});
  if (memory) {
    append(row, {field(std::optional(memory->predicted)), to_string(memory->verdict),
                 field(std::optional(memory->probability_fits))});
  } else {
    append(row, {"", "", ""});
  }
  row.push_back(unknown);
  return csv_line(row);
}

}  // namespace krigtune
