#include "core/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace krigtune {
namespace {

// Reads one record from `text` at `at`, and moves `at` behind its line break.
std::vector<std::string> read_record(std::string_view text, std::size_t& at, const std::string& source, int line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        fields.back() += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      return fields;
    } else if (c != '\r' || (at + 1 < text.size() && text[at + 1] != '\n')) {
      fields.back() += c;
    }
  }
  if (quoted) throw UserError(fmt::format("{}:{}: a quoted field does not end", source, line), "close the quote");
  return fields;
}

}  // namespace

int CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? -1 : static_cast<int>(found - header.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& source) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  CsvTable table;
  std::size_t at = 0;
  int line = 1;
  while (at < text.size()) {
    const std::size_t begin = at;
    std::vector<std::string> fields = read_record(text, at, source, line);
    const bool blank = fields.size() == 1 && fields[0].empty();
    if (table.header.empty()) {
      table.header = std::move(fields);
    } else if (!blank) {
      if (fields.size() != table.header.size()) {
        throw UserError(
            fmt::format("{}:{}: {} fields where the header has {}", source, line, fields.size(), table.header.size()),
            "fix the row");
      }
      table.rows.push_back(std::move(fields));
      table.lines.push_back(line);
    }
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                        text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }
  if (table.header.empty()) throw UserError(source + ": the table is empty", "give it a header and rows");
  return table;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    if (fields[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += fields[i];
      continue;
    }
    line += '"';
    for (const char c : fields[i]) line.append(c == '"' ? 2 : 1, c);
    line += '"';
  }
  return line + '\n';
}

namespace {

bool is_plain_number(const std::string& field) {
  double value = 0.0;
  const char* const end = field.data() + field.size();
  const auto [read_to, error] = std::from_chars(field.data(), end, value);
  return error == std::errc() && read_to == end;
}

std::vector<std::string> safe_fields(std::vector<std::string> fields) {
  constexpr std::string_view kBeginsFormula = "=+-@\t\r";
  for (std::string& field : fields) {
    const bool is_suspect = !field.empty() && kBeginsFormula.find(field.front()) != std::string_view::npos;
    if (is_suspect && !is_plain_number(field)) field.insert(field.begin(), '\'');
  }
  return fields;
}

}  // namespace

std::string spreadsheet_safe(std::string_view csv) {
  CsvTable table = parse_csv(csv, "the table");
  std::string text = csv_line(safe_fields(std::move(table.header)));
  for (std::vector<std::string>& row : table.rows) text += csv_line(safe_fields(std::move(row)));
  return text;
}

}  // namespace krigtune
