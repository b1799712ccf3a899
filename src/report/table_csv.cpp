#include "krigtune/core/csv.h"
#include "table_formats.h"

namespace krigtune {

std::string render_csv(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.name);
  std::string text = csv_line(names);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> line;
    for (const Cell& cell : row) line.push_back(cell.value ? to_string(*cell.value) : "");
    text += csv_line(line);
  }
  return text;
}

}  // namespace krigtune
