#include "page/html/html.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace krigtune::page {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;
constexpr std::uint32_t kHighest = 0x10FFFF;

struct CodePoint {
  std::uint32_t value = kReplacement;
  std::size_t bytes = 1;
};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The one at the beginning of a text that is not empty. Overlong forms, surrogates and torn sequences are none.
CodePoint first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80U) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  if (lead < 0xC2U || lead > 0xF4U || text.size() < bytes) return {};
  std::uint32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return {};
    value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast.at(bytes) || value > kHighest || is_surrogate) return {};
  return {value, bytes};
}

bool turns_direction(std::uint32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

bool is_control(std::uint32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF;
}

void append(std::string& html, const CodePoint& point, std::string_view bytes) {
  switch (point.value) {
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
    case kReplacement:
      html += "\xEF\xBF\xBD";
      return;
    default:
      break;
  }
  if (is_control(point.value) || turns_direction(point.value)) {
    html += fmt::format("U+{:04X}", point.value);
  } else {
    html += bytes;
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    append(html, point, text.substr(0, point.bytes));
    text.remove_prefix(point.bytes);
  }
  return html;
}

std::string user_text(std::string_view text, std::size_t most) {
  std::string html = "<bdi>";
  std::size_t count = 0;
  std::string_view left = text;
  for (; !left.empty() && count < most; ++count) {
    const CodePoint point = first_of(left);
    append(html, point, left.substr(0, point.bytes));
    left.remove_prefix(point.bytes);
  }
  html += "</bdi>";
  if (!left.empty()) html += fmt::format(" … ({} bytes in all)", text.size());
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

// Short ones stay on one line: "7.42 s".
std::string table_cell(const std::string& cell) {
  constexpr std::size_t kShort = 16;
  return fmt::format("<td{}>{}</td>", cell.size() <= kShort ? " class=\"short\"" : "", cell);
}

}  // namespace

std::string table(const HtmlTable& table) {
  std::string html = "<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table>\n";
  if (!table.caption.empty()) html += fmt::format("<caption>{}</caption>\n", escaped(table.caption));
  html += "<thead><tr>";
  for (const std::string& column : table.columns) html += fmt::format("<th scope=\"col\">{}</th>", column);
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", row[i]) : table_cell(row[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace krigtune::page
