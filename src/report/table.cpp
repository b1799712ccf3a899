#include "krigtune/report/table.h"

#include <algorithm>
#include <array>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "table_formats.h"

namespace krigtune {
namespace {

struct FormatEntry {
  TableFormat format;
  const char* name;
  std::string (*render)(const Table& table);
};
constexpr std::array<FormatEntry, 4> kFormats{{{TableFormat::kTable, "table", render_text},
                                               {TableFormat::kMarkdown, "md", render_markdown},
                                               {TableFormat::kCsv, "csv", render_csv},
                                               {TableFormat::kJson, "json", render_json}}};

// Numbers and booleans, then texts, then nothing.
int kind_of(const Cell& cell) {
  if (!cell.value) return 2;
  return std::holds_alternative<std::string>(*cell.value) ? 1 : 0;
}

bool comes_before(const Cell& a, const Cell& b, bool descending) {
  if (kind_of(a) != kind_of(b)) return kind_of(a) < kind_of(b);
  if (kind_of(a) == 2) return false;
  const Value& first = descending ? *b.value : *a.value;
  const Value& second = descending ? *a.value : *b.value;
  if (kind_of(a) == 1) return std::get<std::string>(first) < std::get<std::string>(second);
  return as_number(first) < as_number(second);
}

}  // namespace

Cell number_cell(std::optional<double> number, const std::string& text) {
  return {text, number ? std::optional<Value>(*number) : std::nullopt};
}

Cell text_cell(const std::string& text) { return {text, text.empty() ? std::nullopt : std::optional<Value>(text)}; }

std::vector<std::string> table_format_names() {
  std::vector<std::string> names;
  for (const FormatEntry& entry : kFormats) names.emplace_back(entry.name);
  return names;
}

TableFormat table_format_from(const std::string& word, const std::string& where) {
  for (const FormatEntry& entry : kFormats) {
    if (word == entry.name) return entry.format;
  }
  throw UserError(where + ": unknown format '" + word + "'", suggestion(word, table_format_names()));
}

std::string render(const Table& table, TableFormat format) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.format == format) return entry.render(table);
  }
  return "";
}

void sort_rows(Table& table, const std::string& column, bool descending, const std::string& where) {
  std::vector<std::string> names;
  for (const Column& candidate : table.columns) names.push_back(candidate.name);
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) {
    throw UserError(where + ": there is no column '" + column + "'", suggestion(column, names));
  }
  const auto at = static_cast<std::size_t>(found - names.begin());
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [&](const auto& a, const auto& b) { return comes_before(a[at], b[at], descending); });
}

}  // namespace krigtune
