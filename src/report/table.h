#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "space/configuration.h"

namespace krigtune::report {

/// One field of a table, as shown to people and as read by programs.
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
  std::vector<std::string> notes;        ///< notes for the reader, one line each
  std::vector<std::string> header = {};  ///< lines above the titles, for people
};

enum class TableFormat { kTable, kMarkdown, kCsv, kJson };
/// Throws UserError with the nearest name; `where` says where the word was given.
TableFormat table_format_from(const std::string& word, const std::string& where);
std::vector<std::string> table_format_names();

/// Formats a table: kTable and kMarkdown for people, kCsv with names and raw values, kJson as one document with
/// schema_version.
std::string render(const Table& table, TableFormat format);
/// Formats a table for a terminal with `columns` columns. If it does not fit, titles are broken into several lines,
/// then the widest texts are truncated; header and notes are wrapped. Rows may still be too wide because of their
/// numbers.
std::string render_for_terminal(const Table& table, int columns);
/// Returns the length of the longest line of the table's body, with titles unbroken or broken into lines.
int table_width(const Table& table, bool broken_titles);

/// Removes the columns that are equal in every row, except those in `kept`, and returns their contents:
/// "overlap_comm=true". Columns that are empty in every row are removed without mention. With fewer than two rows, only
/// empty columns are removed.
std::vector<std::string> fold_constants(Table& table, const std::vector<std::string>& kept);
/// Removes a column; does nothing if there is none of that name.
void erase_column(Table& table, const std::string& name);

/// Returns the rows as objects by column name.
nlohmann::ordered_json rows_json(const Table& table);

/// Returns the index of the column with this name or, failing that, with this title: text tables show titles, CSV files
/// show names. Throws UserError with the nearest name; `where` says where the word was given.
std::size_t column_named(const Table& table, const std::string& column, const std::string& where);

/// Sorts by the column's raw values: numbers before texts before unavailable values, each ascending or descending;
/// equal rows keep their order. Throws UserError like column_named.
void sort_rows(Table& table, const std::string& column, bool descending, const std::string& where);

// One format per source file; table.cpp is their registry.
std::string render_text(const Table& table);
std::string render_markdown(const Table& table);
std::string render_csv(const Table& table);
std::string render_json(const Table& table);

}  // namespace krigtune::report
