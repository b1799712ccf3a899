#include "krigtune/core/json.h"
#include "table_formats.h"

namespace krigtune {

Json rows_json(const Table& table) {
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      object[table.columns[i].name] = row[i].value ? to_json(*row[i].value) : Json(nullptr);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string render_json(const Table& table) {
  Json json;
  json["schema_version"] = 1;
  if (!table.notes.empty()) json["notes"] = table.notes;
  json[table.name] = rows_json(table);
  return json.dump(2) + "\n";
}

}  // namespace krigtune
