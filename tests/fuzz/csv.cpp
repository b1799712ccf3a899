#include "core/csv.h"

#include "fuzz/fuzz.h"

KRIGTUNE_FUZZ(csv) {
  const krigtune::CsvTable table = krigtune::parse_csv(text, "table.csv");
  for (const auto& row : table.rows) {
    // A row that is written and read again must be what it was.
    const krigtune::CsvTable again =
        krigtune::parse_csv(krigtune::csv_line(table.header) + krigtune::csv_line(row), "again.csv");
    if (again.rows.size() != 1 || again.rows.front() != row) __builtin_trap();
    break;
  }
}
