#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/columns.h"
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

// Sorts numbers and booleans before texts, and texts before empty cells.
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

std::size_t column_named(const Table& table, const std::string& column, const std::string& where) {
  std::vector<std::string> names;
  std::vector<std::string> titles;
  for (const Column& candidate : table.columns) {
    names.push_back(candidate.name);
    titles.push_back(candidate.title);
  }
  for (const std::vector<std::string>* words : {&names, &titles}) {
    const auto found = std::find(words->begin(), words->end(), column);
    if (found != words->end()) return static_cast<std::size_t>(found - words->begin());
  }
  throw UserError(where + ": there is no column '" + column + "'", suggestion(column, names));
}

void sort_rows(Table& table, const std::string& column, bool descending, const std::string& where) {
  const std::size_t at = column_named(table, column, where);
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

// A bar or a line break would end the field, and a browser would interpret a tag.
std::string escaped_cell(const std::string& text) {
  std::string result;
  for (const char c : visible(text)) {
    if (c == '|') {
      result += "\\|";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
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

// Columns are padded to their widest field, with two blanks between them and no frames, so that the text is easy to
// grep and paste.
namespace {

constexpr int kGap = 2;

// Returns one line, or one for each word.
std::vector<std::string> title_lines(const std::string& title, bool broken) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (broken && begin < title.size()) {
    // An underscore stays at the end of its line, so that readers can put a name together again.
    const std::size_t end = std::min(title.find_first_of(" _", begin), title.size());
    const bool is_name = end < title.size() && title[end] == '_';
    lines.push_back(visible(title.substr(begin, end - begin + (is_name ? 1 : 0))));
    begin = end + 1;
  }
  if (lines.empty()) lines.push_back(visible(title));
  return lines;
}

int width_of(const Table& table, std::size_t column, bool broken_titles) {
  int width = 0;
  for (const std::string& line : title_lines(table.columns[column].title, broken_titles))
    width = std::max(width, columns_of(line));
  for (const std::vector<Cell>& row : table.rows) width = std::max(width, columns_of(visible(row[column].text)));
  return width;
}

std::vector<int> widths_of(const Table& table, bool broken_titles) {
  std::vector<int> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) widths.push_back(width_of(table, i, broken_titles));
  return widths;
}

int sum_of(const std::vector<int>& widths) {
  int sum = kGap * std::max(static_cast<int>(widths.size()) - 1, 0);
  for (const int width : widths) sum += width;
  return sum;
}

// Shortens the widest texts, one column at a time; narrow columns are not changed.
void shrink(const Table& table, std::vector<int>& widths, int columns) {
  constexpr int kNarrow = 8;
  while (sum_of(widths) > columns) {
    int* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!table.columns[i].right_aligned && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr || *widest <= kNarrow) {
      widest = &*std::max_element(widths.begin(), widths.end());
      if (*widest <= kNarrow) return;
    }
    --*widest;
  }
}

std::string table_line(const Table& table, const std::vector<int>& widths, const std::vector<std::string>& texts) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (i > 0) line.append(kGap, ' ');
    line += padded(clipped(visible(texts[i]), widths[i]), widths[i], table.columns[i].right_aligned);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string title_text(const Table& table, const std::vector<int>& widths, bool broken) {
  std::size_t height = 1;
  for (const Column& column : table.columns) height = std::max(height, title_lines(column.title, broken).size());
  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::vector<std::string> words;
    for (const Column& column : table.columns) {
      const std::vector<std::string> lines = title_lines(column.title, broken);
      const std::size_t blank = height - lines.size();
      words.push_back(line < blank ? "" : lines[line - blank]);
    }
    text += table_line(table, widths, words);
  }
  return text;
}

std::string body_text(const Table& table, const std::vector<int>& widths, bool broken) {
  std::string text = title_text(table, widths, broken);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> texts;
    for (const Cell& cell : row) texts.push_back(cell.text);
    text += table_line(table, widths, texts);
  }
  return text;
}

}  // namespace

std::string render_text(const Table& table) {
  std::string text;
  for (const std::string& line : table.header) text += line + "\n";
  text += body_text(table, widths_of(table, false), false);
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

std::string render_for_terminal(const Table& table, int columns) {
  constexpr int kIndent = 2;
  std::string text;
  for (const std::string& line : table.header) text += wrapped_lines(visible(line), columns, kIndent) + "\n";
  const bool broken = table_width(table, false) > columns;
  std::vector<int> widths = widths_of(table, broken);
  shrink(table, widths, columns);
  text += body_text(table, widths, broken);
  for (const std::string& note : table.notes) text += wrapped_lines(visible(note), columns, kIndent) + "\n";
  return text;
}

int table_width(const Table& table, bool broken_titles) { return sum_of(widths_of(table, broken_titles)); }

void erase_column(Table& table, const std::string& name) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  if (found == table.columns.end()) return;
  const auto at = found - table.columns.begin();
  table.columns.erase(found);
  for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + at);
}

std::vector<std::string> fold_constants(Table& table, const std::vector<std::string>& kept) {
  std::vector<std::string> said;
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const Column column = table.columns[i];
    if (is_one_of(column.name, kept) || table.rows.empty()) continue;
    const std::string text = table.rows.front()[i].text;
    const bool same = std::all_of(table.rows.begin(), table.rows.end(),
                                  [&](const std::vector<Cell>& row) { return row[i].text == text; });
    if (!same || (table.rows.size() < 2 && !text.empty())) continue;
    if (!text.empty()) said.insert(said.begin(), fmt::format("{}={}", column.title, text));
    erase_column(table, column.name);
  }
  return said;
}

}  // namespace krigtune::report
