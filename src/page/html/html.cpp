#include "page/html/html.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/utf8.h"

namespace krigtune::page {
namespace {

bool turns_direction(std::uint32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

bool is_control(std::uint32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF;
}

void append(std::string& html, const Utf8Character& character, std::string_view bytes) {
  if (!character.valid) {
    html += "\xEF\xBF\xBD";
    return;
  }
  switch (character.code) {
    case '&':
      html += "&amp;";
      return;
    case '<':
      html += "&lt;";
      return;
    case '>':
      html += "&gt;";
      return;
    case '"':
      html += "&quot;";
      return;
    case '\'':
      html += "&#39;";
      return;
    default:
      break;
  }
  if (is_control(character.code) || turns_direction(character.code)) {
    html += fmt::format("U+{:04X}", character.code);
  } else {
    html += bytes;
  }
}

// Appends the character at `at` and returns the start of the next one.
std::size_t append_at(std::string& html, std::string_view text, std::size_t at) {
  const Utf8Character character = utf8_at(text, at);
  append(html, character, text.substr(at, character.bytes));
  return at + character.bytes;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (std::size_t at = 0; at < text.size();) at = append_at(html, text, at);
  return html;
}

std::string user_text(std::string_view text, std::size_t most) {
  std::string html = "<bdi>";
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size() && count < most; ++count) at = append_at(html, text, at);
  html += "</bdi>";
  if (at < text.size()) html += fmt::format(" … ({} bytes in all)", text.size());
  return html;
}

std::string element(std::string_view tag, const Attributes& attributes, std::string_view content) {
  std::string html = fmt::format("<{}", tag);
  for (const auto& [name, value] : attributes) {
    html += value.empty() ? fmt::format(" {}", name) : fmt::format(" {}=\"{}\"", name, escaped(value));
  }
  return html + fmt::format(">{}</{}>", content, tag);
}

std::string element(std::string_view tag, std::string_view content) { return element(tag, {}, content); }

std::string paragraph(std::string_view content) { return fmt::format("<p>{}</p>\n", content); }

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text.back() == '.' ? text : text + ".";
}

std::string list(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string html = "<ul>\n";
  for (const std::string& item : items) html += fmt::format("<li>{}</li>\n", item);
  return html + "</ul>\n";
}

namespace {

// Short cells are not broken into lines: "7.42 s".
std::string table_cell(const std::string& cell) {
  constexpr std::size_t kShort = 16;
  return fmt::format("<td{}>{}</td>", cell.size() <= kShort ? " class=\"short\"" : "", cell);
}

}  // namespace

std::string table(const HtmlTable& table) {
  const std::string id = table.id.empty() ? "" : fmt::format(" id=\"{}\" class=\"numbers\"", escaped(table.id));
  std::string html =
      fmt::format("<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table{}>\n", id);
  if (!table.caption.empty()) html += fmt::format("<caption>{}</caption>\n", escaped(table.caption));
  html += "<thead><tr>";
  for (const std::string& column : table.columns) html += fmt::format("<th scope=\"col\">{}</th>", column);
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      html += i == 0             ? fmt::format("<th scope=\"row\">{}</th>", row[i])
              : table.id.empty() ? table_cell(row[i])
                                 : fmt::format("<td>{}</td>", row[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace krigtune::page
