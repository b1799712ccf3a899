#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace krigtune::page {

// HTML as text. What comes from users (names, values, commands, logs) goes through escaped() or user_text(); everything
// else that takes text takes markup.

/// Text for an element or a quoted attribute: markup characters become references; control characters and those that
/// turn the direction of text (Unicode Bidi_Control) become visible as "U+202E"; bytes that are no UTF-8 become U+FFFD.
/// Tabs and line feeds stay.
std::string escaped(std::string_view text);

/// The same of something that a user wrote, set apart from the direction of the text around it (<bdi>). Beyond `most`
/// characters it is cut, and says how long it was.
std::string user_text(std::string_view text, std::size_t most = 200);

/// Names and values; values are escaped here. An empty value: the name alone (hidden, open).
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// <tag name="value">content</tag>. `content` is markup.
std::string element(std::string_view tag, const Attributes& attributes, std::string_view content);
std::string element(std::string_view tag, std::string_view content);
/// <p>content</p> and a line feed; `content` is markup.
std::string paragraph(std::string_view content);
/// The first letter large and a full stop at the end, where they are not.
std::string sentence(std::string text);
/// <ul> of items that are markup. "" where there is none.
std::string list(const std::vector<std::string>& items);

/// A table. Cells are markup; of a row the first cell is its heading.
struct HtmlTable {
  std::string caption;  ///< text
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string id = {};  ///< of an element that the script reads; its cells are numbers and have no classes
};
std::string table(const HtmlTable& table);

}  // namespace krigtune::page
