// TOML with the byte positions of its values; toml++ provides lines and columns, in characters.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/formats/toml.h"
#include "core/text.h"
#include "runner/in_place_text.h"

namespace krigtune::runner {
namespace {

class TomlWalk {
 public:
  explicit TomlWalk(const std::string& text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    lines_.push_back(text.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0 ? kByteOrderMark.size() : 0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') lines_.push_back(i + 1);
    }
  }

  TextNode node_of(const toml::node& from) const {
    TextNode node;
    node.begin = byte_at(from.source().begin);
    node.end = byte_at(from.source().end);
    if (const toml::table* table = from.as_table()) {
      node.is = TextNode::Is::kTable;
      node.is_inline = table->is_inline();
      for (const auto& [key, value] : *table) {
        node.children.push_back(node_of(value));
        node.children.back().name = std::string(key.str());
        node.children.back().name_begin = byte_at(key.source().begin);
      }
    } else if (const toml::array* list = from.as_array()) {
      node.is = TextNode::Is::kList;
      for (const toml::node& value : *list) {
        node.children.push_back(node_of(value));
        node.children.back().name = std::to_string(node.children.size() - 1);
      }
    } else {
      value(from, node);
    }
    return node;
  }

 private:
  void value(const toml::node& from, TextNode& node) const {
    std::ostringstream kind;
    kind << from.type();
    node.kind = kind.str();
    const toml::value<std::string>* string = from.as_string();
    const bool has_place = node.begin != kNowhere && node.end != kNowhere && node.begin <= node.end;
    node.text = string != nullptr ? string->get() : has_place ? text_.substr(node.begin, node.end - node.begin) : "";
  }

  std::size_t byte_at(const toml::source_position& position) const {
    if (position.line == 0 || position.line > lines_.size()) return kNowhere;
    std::size_t at = lines_[position.line - 1];
    for (toml::source_index column = 1; column < position.column && at < text_.size(); ++column) {
      ++at;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0U) == 0x80U) ++at;
    }
    return at;
  }

  const std::string& text_;
  std::vector<std::size_t> lines_;
};

TextNode read_toml(const std::string& document) { return TomlWalk(document).node_of(parse_toml(document, "")); }

std::string basic_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

bool is_literal_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c != '\'' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

bool is_toml_value(const std::string& text) {
  try {
    return parse_toml("x = " + text, "").size() == 1 && text.find('\n') == std::string::npos;
  } catch (const UserError&) {
    return false;
  }
}

std::string written_toml(const std::string& document, const NewValue& value, const TextNode* old) {
  const bool was_text = old != nullptr && old->kind == "string";
  const bool is_plain = !value.is_text && !(was_text && stays_quoted(value, *old)) &&
                        (reads_as_number(value.text) || reads_as_truth(value.text)) && is_toml_value(value.text);
  if (!is_plain) {
    const bool was_literal = was_text && document[old->begin] == '\'';
    return was_literal && is_literal_text(value.text) ? fmt::format("'{}'", value.text) : basic_text(value.text);
  }
  // A strict parser does not accept 1 for 1.0.
  const bool was_real = old != nullptr && old->kind == "floating-point";
  const bool is_whole = reads_as_number(value.text) && value.text.find_first_of(".eEnN") == std::string::npos;
  return was_real && is_whole ? value.text + ".0" : value.text;
}

std::string toml_name(const std::string& name) {
  const bool is_bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return is_bare ? name : basic_text(name);
}

std::string dotted(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(toml_name(name));
  return join(words, ".");
}

std::string with_line_after(const std::string& document, std::size_t at, const std::string& line) {
  const std::string end = end_of_line_of(document);
  const std::size_t line_end = document.find('\n', at);
  if (line_end == std::string::npos) return document + (document.empty() ? "" : end) + line + end;
  return with_text_at(document, line_end + 1, line_end + 1, line + end);
}

// Tries these places: at the end of a table that has a header, after the header, in a section of its own, and before
// everything else.
std::vector<std::string> added_toml(const std::string& document, const TextNode& table,
                                    const std::vector<std::string>& path, const std::vector<std::string>& missing,
                                    const std::string& written) {
  const std::string line = fmt::format("{} = {}", dotted(missing), written);
  if (table.is_inline) {
    const std::size_t close = document.find_last_not_of(" \t}", table.end - 1) + 1;
    return {with_text_at(document, close, close, table.children.empty() ? " " + line + " " : ", " + line)};
  }
  std::vector<std::string> ways;
  std::size_t last = kNowhere;
  for (const TextNode& child : table.children) {
    const bool stands_here = child.is != TextNode::Is::kTable || child.is_inline;
    if (stands_here && child.end != kNowhere) last = last == kNowhere ? child.end : std::max(last, child.end);
  }
  // Some of the names that lead here may be in the header, and the others in dotted keys.
  for (std::size_t dots = 0; dots <= path.size(); ++dots) {
    std::vector<std::string> names(path.end() - static_cast<std::ptrdiff_t>(dots), path.end());
    names.insert(names.end(), missing.begin(), missing.end());
    const std::string dotted_line = fmt::format("{} = {}", dotted(names), written);
    if (last != kNowhere) ways.push_back(with_line_after(document, last, dotted_line));
    if (!path.empty() && table.begin != kNowhere) ways.push_back(with_line_after(document, table.begin, dotted_line));
  }
  const std::string end = end_of_line_of(document);
  std::vector<std::string> whole = path;
  whole.insert(whole.end(), missing.begin(), missing.end());
  if (whole.size() > 1) {
    const std::vector<std::string> section(whole.begin(), whole.end() - 1);
    const std::string gap = document.empty() ? "" : document.back() == '\n' ? end : end + end;
    ways.push_back(document +
                   fmt::format("{}[{}]{}{} = {}{}", gap, dotted(section), end, toml_name(whole.back()), written, end));
  }
  ways.push_back(fmt::format("{} = {}{}{}", dotted(whole), written, end, document));
  return ways;
}

}  // namespace

TextFormat toml_format() { return {read_toml, written_toml, added_toml}; }

}  // namespace krigtune::runner
