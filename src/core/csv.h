#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// A CSV table as text: every row has as many fields as the header.
struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  ///< where each row begins in the text, from 1

  /// Column of that name, or -1.
  int column(std::string_view name) const;
};

/// RFC 4180 (quotes, doubled quotes, CRLF or LF). `source` names the text in errors: UserError with the line.
CsvTable parse_csv(std::string_view text, const std::string& source);

/// One line with its "\n"; fields that hold a comma, a quote or a line break are quoted.
std::string csv_line(const std::vector<std::string>& fields);

/// The same table for spreadsheets, which take a cell that begins with = + - @, a tab or a carriage return for a
/// formula: such a text gets an apostrophe before it, a number stays as it is. Throws UserError where the text is no
/// CSV.
std::string spreadsheet_safe(std::string_view csv);

}  // namespace krigtune
