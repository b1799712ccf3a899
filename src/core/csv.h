#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// A CSV table as text. Every row has as many fields as the header.
struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  ///< the line of the text on which each row begins, from 1

  /// Returns the index of the column with that name, or -1.
  int column(std::string_view name) const;
};

/// Parses RFC 4180 (quotes, doubled quotes, CRLF or LF). `source` names the text in errors. Throws UserError with the
/// line.
CsvTable parse_csv(std::string_view text, const std::string& source);

/// Returns one line with its "\n". Fields that contain a comma, a quote or a line break are quoted.
std::string csv_line(const std::vector<std::string>& fields);

/// Returns the table in a form that is safe to open in a spreadsheet, which treats a cell that begins with = + - @, a
/// tab or a carriage return as a formula. Such a text gets an apostrophe before it; numbers stay unchanged. Throws
/// UserError if the text is not CSV.
std::string spreadsheet_safe(std::string_view csv);

}  // namespace krigtune
