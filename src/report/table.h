#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "space/configuration.h"

namespace krigtune::report {

/// One field of a table: as people read it, and as programs do.
struct Cell {
  std::string text;
  std::optional<space::Value> value;  ///< empty: not available
};
Cell number_cell(std::optional<double> number, const std::string& text);
Cell text_cell(const std::string& text);

struct Column {
  std::string name;   ///< for programs: the field's name in CSV and JSON
  std::string title;  ///< for people
  bool right_aligned = false;
};

struct Table {
  std::string name;  ///< "trials": the key of the rows in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes;        ///< what people must know when they read it, one line each
  std::vector<std::string> header = {};  ///< lines above the titles, for people
};

enum class TableFormat { kTable, kMarkdown, kCsv, kJson };
/// Throws UserError with the nearest name; `where` says where the word stood.
TableFormat table_format_from(const std::string& word, const std::string& where);
std::vector<std::string> table_format_names();

/// kTable and kMarkdown for people, kCsv with names and raw values, kJson one document with schema_version.
std::string render(const Table& table, TableFormat format);
/// The table for a terminal of so many columns: titles are broken into several lines where that makes it fit, then the
/// widest texts are clipped; header and notes are wrapped. Rows need not fit where the numbers alone are too wide.
std::string render_for_terminal(const Table& table, int columns);
/// The widest line of the table's body, titles as they are or broken into lines.
int table_width(const Table& table, bool broken_titles);

/// Takes out the columns that say the same in every row, but for those named in `kept`, and returns what they say:
/// "overlap_comm=true". Columns that are empty in every row go without a word. Nothing is taken out of fewer than two
/// rows but empty columns.
std::vector<std::string> fold_constants(Table& table, const std::vector<std::string>& kept);
/// Takes out a column; nothing happens where there is none of that name.
void erase_column(Table& table, const std::string& name);

/// The rows as objects by column name.
nlohmann::ordered_json rows_json(const Table& table);

/// The index of the column with this name, or else with this title: a text table shows titles, a CSV file names. Throws
/// UserError with the nearest name; `where` says where the word was written.
std::size_t column_named(const Table& table, const std::string& column, const std::string& where);

/// Sorts by the column's raw values: numbers before texts before what is not available, each ascending or descending;
/// rows that are equal keep their order. Throws UserError as column_named does.
void sort_rows(Table& table, const std::string& column, bool descending, const std::string& where);

// One format a file; table.cpp is their registry.
std::string render_text(const Table& table);
std::string render_markdown(const Table& table);
std::string render_csv(const Table& table);
std::string render_json(const Table& table);

}  // namespace krigtune::report
