// Columns padded to their widest field, two blanks apart: no frames, so that it greps and pastes well.
#include <algorithm>

#include "table_formats.h"

namespace krigtune {
namespace {

std::size_t width_of(const Table& table, std::size_t column) {
  std::size_t width = table.columns[column].title.size();
  for (const std::vector<Cell>& row : table.rows) width = std::max(width, row[column].text.size());
  return width;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - text.size(), ' ');
  return right ? blanks + text : text + blanks;
}

}  // namespace

std::string render_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) widths.push_back(width_of(table, i));
  const auto line = [&](const auto& text_at) {
    std::string text;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) text += "  ";
      text += padded(text_at(i), widths[i], table.columns[i].right_aligned);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line([&](std::size_t i) { return table.columns[i].title; });
  for (const std::vector<Cell>& row : table.rows) text += line([&](std::size_t i) { return row[i].text; });
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

}  // namespace krigtune
