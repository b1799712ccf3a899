#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/csv.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::report {
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
  const space::Value& first = descending ? *b.value : *a.value;
  const space::Value& second = descending ? *a.value : *b.value;
  if (kind_of(a) == 1) return std::get<std::string>(first) < std::get<std::string>(second);
  return space::as_number(first) < space::as_number(second);
}

}  // namespace

Cell number_cell(std::optional<double> number, const std::string& text) {
  return {text, number ? std::optional<space::Value>(*number) : std::nullopt};
}

Cell text_cell(const std::string& text) {
  return {text, text.empty() ? std::nullopt : std::optional<space::Value>(text)};
}

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

std::string render_csv(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.name);
  std::string text = csv_line(names);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> line;
    for (const Cell& cell : row) line.push_back(cell.value ? space::to_string(*cell.value) : "");
    text += csv_line(line);
  }
  return text;
}

Json rows_json(const Table& table) {
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      object[table.columns[i].name] = row[i].value ? space::to_json(*row[i].value) : Json(nullptr);
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

// Columns padded to their widest field, two blanks apart: no frames, so that it greps and pastes well.
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

}  // namespace krigtune::report
