#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace krigtune::page {

// HTML as text. Everything that users wrote (names, values, commands, logs) must pass through escaped() or user_text().
// All other text parameters expect markup.

/// Escapes text for an element or a quoted attribute. Markup characters become references; control characters and those
/// that change the direction of text (Unicode Bidi_Control) become visible as "U+202E"; invalid UTF-8 becomes U+FFFD.
/// Tabs and line feeds are kept.
std::string escaped(std::string_view text);

/// Escapes a user's text and isolates it from the direction of the surrounding text (<bdi>). Longer texts are cut after
/// `most` characters, and their length is stated.
std::string user_text(std::string_view text, std::size_t most = 200);

/// Names and values; values are escaped here. An empty value gives only the name (hidden, open).
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Returns <tag name="value">content</tag>; `content` is markup.
std::string element(std::string_view tag, const Attributes& attributes, std::string_view content);
std::string element(std::string_view tag, std::string_view content);
/// Returns <p>content</p> and a line feed; `content` is markup.
std::string paragraph(std::string_view content);
/// Makes the first letter upper case and adds a missing full stop.
std::string sentence(std::string text);
/// Returns a <ul> of items that are markup; "" if there are none.
std::string list(const std::vector<std::string>& items);

/// A table. Cells are markup; the first cell of a row is its heading.
struct HtmlTable {
  std::string caption;  ///< text
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string id = {};  ///< id for the script; the cells are then numbers without classes
};
std::string table(const HtmlTable& table);

}  // namespace krigtune::page
