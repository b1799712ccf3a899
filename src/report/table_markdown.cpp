#include <fmt/format.h>

#include "table_formats.h"

namespace krigtune {
namespace {

// A bar would end the field.
std::string escaped_cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

}  // namespace

std::string render_markdown(const Table& table) {
  std::string text = "|";
  for (const Column& column : table.columns) text += fmt::format(" {} |", escaped_cell(column.title));
  text += "\n|";
  for (const Column& column : table.columns) text += column.right_aligned ? "---:|" : "---|";
  text += "\n";
  for (const std::vector<Cell>& row : table.rows) {
    text += "|";
    for (const Cell& cell : row) text += fmt::format(" {} |", escaped_cell(cell.text));
    text += "\n";
  }
  for (const std::string& note : table.notes) text += fmt::format("\n{}\n", note);
  return text;
}

}  // namespace krigtune
