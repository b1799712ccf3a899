// YAML with the byte positions of its values. yaml-cpp provides where a node begins, including its anchor and tag. Its
// end, the place of an empty value, and the place of an alias follow from the surrounding text.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/yaml.h"
#include "core/json.h"
#include "runner/in_place_text.h"

namespace krigtune::runner {
namespace {

bool is_yaml_blank(char c) { return c == ' ' || c == '\t'; }
bool is_yaml_end(char c) { return c == '\r' || c == '\n'; }
bool is_yaml_space(char c) { return is_yaml_blank(c) || is_yaml_end(c); }

// Returns the end of a node's contents, as far as it is known.
std::size_t last_byte(const TextNode& node) {
  if (node.children.empty() || node.is_inline || node.is_alias) return node.end;
  return last_byte(node.children.back());
}

class YamlWalk {
 public:
  explicit YamlWalk(const std::string& text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) skipped_ = kByteOrderMark.size();
  }

  TextNode document(const YAML::Node& root) { return node_of(root); }

 private:
  std::size_t begin_of(const YAML::Node& node) const {
    return node.Mark().pos < 0 ? kNowhere : static_cast<std::size_t>(node.Mark().pos) + skipped_;
  }
  char at(std::size_t place) const { return place < text_.size() ? text_[place] : '\n'; }
  std::size_t behind_blanks(std::size_t place) const {
    while (place < text_.size() && is_yaml_blank(text_[place])) ++place;
    return place;
  }

  // Returns the position after "&anchor" and "!tag".
  std::size_t behind_properties(std::size_t place) const {
    while (at(place) == '&' || at(place) == '!') {
      while (place < text_.size() && !is_yaml_space(text_[place])) ++place;
      while (place < text_.size() && is_yaml_space(text_[place])) ++place;
    }
    return place;
  }

  std::size_t behind_quotes(std::size_t place) const {
    const char quote = text_[place++];
    while (place < text_.size()) {
      const char here = text_[place];
      const bool is_pair = quote == '"' ? here == '\\' : here == quote && at(place + 1) == quote;
      if (here == quote && !is_pair) return place + 1;
      place += is_pair ? 2 : 1;
    }
    return kNowhere;
  }

  // Returns the position after the ':' of the key that begins there; kNowhere if it is not a simple key.
  std::size_t behind_colon(std::size_t key) const {
    std::size_t place = behind_properties(key);
    if (at(place) == '"' || at(place) == '\'') {
      place = behind_quotes(place);
      if (place == kNowhere) return kNowhere;
      place = behind_blanks(place);
      return at(place) == ':' ? place + 1 : kNowhere;
    }
    for (; place < text_.size() && !is_yaml_end(text_[place]); ++place) {
      const char next = at(place + 1);
      if (text_[place] == ':' &&
          (is_yaml_space(next) || std::string_view(",[]{}").find(next) != std::string_view::npos))
        return place + 1;
    }
    return kNowhere;
  }

  TextNode node_of(const YAML::Node& from) {
    TextNode node;
    const std::size_t marked = begin_of(from);
    if (from.IsMap() || from.IsSequence()) {
      node.is = from.IsMap() ? TextNode::Is::kTable : TextNode::Is::kList;
      node.is_inline = from.Style() == YAML::EmitterStyle::Flow;
      node.begin = node.is_inline && marked != kNowhere ? behind_properties(marked) : marked;
      node.kind = from.Tag();
      if (from.IsMap()) {
        add_members(from, node);
      } else {
        add_items(from, node, marked);
      }
    } else if (from.IsScalar()) {
      node.kind = from.Tag();
      node.text = from.Scalar();
      node.definition = marked;
      if (marked != kNowhere) place_value(behind_properties(marked), node);
    } else {
      node.kind = "null";
      place_null(marked, node);
    }
    return node;
  }

  void add_members(const YAML::Node& from, TextNode& node) {
    for (const auto& entry : from) {
      const std::size_t key = begin_of(entry.first);
      const std::size_t colon = key == kNowhere ? kNowhere : behind_colon(key);
      TextNode child = node_of(entry.second);
      child.name = entry.first.IsScalar() ? entry.first.Scalar() : "";
      child.name_begin = key;
      if (colon != kNowhere) place_behind(colon, entry.second, child);
      node.children.push_back(std::move(child));
    }
  }

  // Records that the document has an alias, or nothing, at the place of the value.
  void place_behind(std::size_t colon, const YAML::Node& value, TextNode& child) const {
    const std::size_t first = behind_properties(behind_blanks(colon));
    const bool is_null = child.kind == "null" && value.IsNull();
    if (at(first) == '*') {
      child.is_alias = true;
      child.begin = first;
      child.end = end_of_word(first);
    } else if (is_null && (child.begin == kNowhere || child.begin != first || child.begin == child.end)) {
      child.begin = colon;
      child.end = colon;
    } else if (child.begin != kNowhere && child.begin < colon) {  // an alias on a later line
      child.begin = kNowhere;
    }
  }

  void add_items(const YAML::Node& from, TextNode& node, std::size_t marked) {
    std::size_t behind = marked;  // the last item
    for (const auto& item : from) {
      TextNode child = node_of(item);
      child.name = std::to_string(node.children.size());
      const bool is_alias = child.begin != kNowhere && child.begin < behind;
      const std::size_t end = last_byte(child);
      if (!is_alias && end != kNowhere) behind = std::max(behind, end);
      const bool is_nothing = child.kind == "null" && child.begin == child.end;
      if (is_alias || is_nothing) child.begin = kNowhere;
      node.children.push_back(std::move(child));
    }
  }

  std::size_t end_of_word(std::size_t place) const {
    while (place < text_.size() && !is_yaml_space(text_[place]) &&
           std::string_view(",[]{}").find(text_[place]) == std::string_view::npos) {
      ++place;
    }
    return place;
  }

  void place_null(std::size_t marked, TextNode& node) const {
    if (marked == kNowhere) return;
    node.begin = behind_properties(marked);
    node.end = end_of_word(node.begin);
    const std::string word = node.begin <= text_.size() ? text_.substr(node.begin, node.end - node.begin) : "";
    const bool is_word = word == "~" || word == "null" || word == "Null" || word == "NULL";
    if (!is_word) node.end = node.begin;
  }

  void place_value(std::size_t begin, TextNode& node) const {
    node.begin = begin;
    if (at(begin) == '"' || at(begin) == '\'') {
      node.end = behind_quotes(begin);
    } else if (at(begin) == '|' || at(begin) == '>') {
      node.end = end_of_block(begin);
    } else {
      node.end = end_of_plain(begin, node.text);
    }
  }

  // "|" and the lines after it that are indented at least as deep as the first of them.
  std::size_t end_of_block(std::size_t begin) const {
    std::size_t end = std::min(text_.find('\n', begin), text_.size());
    std::size_t depth = kNowhere;
    for (std::size_t line = end + 1; line < text_.size();) {
      const std::size_t first = text_.find_first_not_of(' ', line);
      const std::size_t line_end = std::min(text_.find('\n', line), text_.size());
      const bool is_empty = first == std::string::npos || is_yaml_end(text_[first]);
      if (!is_empty && depth == kNowhere) depth = first - line;
      if (!is_empty && (first - line < depth || depth == 0)) break;
      if (!is_empty) end = line_end;
      line = line_end + 1;
    }
    return end > begin && at(end - 1) == '\r' ? end - 1 : end;
  }

  // Line breaks inside a plain text count as blanks.
  std::size_t end_of_plain(std::size_t begin, const std::string& text) const {
    std::size_t place = begin;
    for (std::size_t i = 0; i < text.size();) {
      if (is_yaml_space(text[i])) {
        if (!is_yaml_space(at(place))) return kNowhere;
        while (i < text.size() && is_yaml_space(text[i])) ++i;
        while (place < text_.size() && is_yaml_space(text_[place])) ++place;
      } else if (at(place) == text[i]) {
        ++i;
        ++place;
      } else {
        return kNowhere;
      }
    }
    return place;
  }

  const std::string& text_;
  std::size_t skipped_ = 0;
};

TextNode read_yaml(const std::string& document) {
  const std::vector<YAML::Node> documents = parse_yaml(document, "");
  if (documents.size() > 1) throw UserError("YAML of several documents", "name a file of one");
  TextNode root;
  root.kind = "null";
  if (!documents.empty()) root = YamlWalk(document).document(documents.front());
  if (root.is == TextNode::Is::kValue && root.kind != "null") {
    throw UserError("not YAML with keys: it is a single text", "name a file of keys and values");
  }
  return root;
}

// Returns whether every YAML reader takes a plain word as text. YAML 1.1 has many words for true, and 1:30 is a number.
bool is_plain_yaml_text(const std::string& text) {
  static constexpr const char* kWords[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  if (text.empty() || !is_letter(text.front())) return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(std::begin(kWords), std::end(kWords), lower) == std::end(kWords) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
         });
}

std::string quoted_yaml(const std::string& text, char quote) {
  const bool is_printable =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
  if (quote == '"' || !is_printable) return Json(text).dump();  // JSON strings are valid YAML
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

// PyYAML reads 1e-05 as text; it requires the point and the sign.
std::string yaml_number(const std::string& text) {
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent == std::string::npos) return text;
  const bool has_point = text.find('.') < exponent;
  const bool has_sign = text.find_first_of("+-", exponent) == exponent + 1;
  return text.substr(0, exponent) + (has_point ? "" : ".0") + "e" + (has_sign ? "" : "+") + text.substr(exponent + 1);
}

std::string written_yaml(const std::string& document, const NewValue& value, const TextNode* old) {
  // Where the value was empty, a blank must be added.
  const bool needs_blank =
      old != nullptr && old->begin == old->end && old->begin > 0 && document[old->begin - 1] == ':';
  const std::string blank = needs_blank ? " " : "";
  const char quote = old == nullptr || old->begin >= old->end ? '\0' : document[old->begin];
  const bool was_quoted = (quote == '"' || quote == '\'') && stays_quoted(value, *old);
  if (was_quoted && !is_null(value)) return quoted_yaml(value.text, quote);
  if (!value.is_text && reads_as_number(value.text)) return blank + yaml_number(value.text);
  const bool is_word = is_null(value) || (!value.is_text && reads_as_truth(value.text));
  return blank + (is_word || is_plain_yaml_text(value.text) ? value.text : quoted_yaml(value.text, '"'));
}

std::string yaml_name(const std::string& name) { return is_plain_yaml_text(name) ? name : quoted_yaml(name, '"'); }

// Returns "a:" with "b: 1" nested in it, as lines indented by `depth`; the first one is not indented.
std::string nested_yaml(const std::vector<std::string>& names, const std::string& written, std::size_t depth,
                        const std::string& end) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += end + std::string(depth + 2 * i, ' ');
    text += yaml_name(names[i]) + ":";
  }
  return text + " " + written;
}

std::string inline_yaml(const std::vector<std::string>& names, const std::string& written) {
  std::string text = written;
  for (std::size_t i = names.size(); i-- > 0;) {
    text = fmt::format("{}: {}", yaml_name(names[i]), text);
    if (i > 0) text = fmt::format("{{{}}}", text);
  }
  return text;
}

std::size_t column_of(const std::string& document, std::size_t place) {
  const std::size_t line = document.rfind('\n', place == 0 ? 0 : place - 1);
  return line == std::string::npos || place == 0 ? place : place - line - 1;
}

// Inserts lines after the line of `place`, or at the end.
std::string with_lines_after(const std::string& document, std::size_t place, const std::string& lines) {
  const std::string end = end_of_line_of(document);
  const std::size_t line_end = place >= document.size() ? std::string::npos : document.find('\n', place);
  if (line_end != std::string::npos) return with_text_at(document, line_end + 1, line_end + 1, lines + end);
  return document + (document.empty() || document.back() == '\n' ? "" : end) + lines + end;
}

std::vector<std::string> added_to_block(const std::string& document, const TextNode& table,
                                        const std::vector<std::string>& missing, const std::string& written) {
  const std::string end = end_of_line_of(document);
  const std::size_t first = table.children.front().name_begin;
  if (first == kNowhere) return {};
  const std::size_t depth = column_of(document, first);
  const std::string lines = nested_yaml(missing, written, depth, end);
  std::vector<std::string> ways;
  const std::size_t last = last_byte(table);
  if (last != kNowhere) ways.push_back(with_lines_after(document, last, std::string(depth, ' ') + lines));
  ways.push_back(with_text_at(document, first, first, lines + end + std::string(depth, ' ')));
  return ways;
}

std::vector<std::string> added_yaml(const std::string& document, const TextNode& table,
                                    const std::vector<std::string>& path, const std::vector<std::string>& missing,
                                    const std::string& written) {
  if (table.is_inline) {
    const std::string member = inline_yaml(missing, written) + (table.children.empty() ? "" : ", ");
    return {with_text_at(document, table.begin + 1, table.begin + 1, member)};
  }
  if (!table.children.empty()) return added_to_block(document, table, missing, written);
  const std::string end = end_of_line_of(document);
  if (path.empty()) return {with_lines_after(document, document.size(), nested_yaml(missing, written, 0, end))};
  if (table.name_begin == kNowhere || table.begin == kNowhere) return {};
  // The key had no value.
  const std::size_t depth = column_of(document, table.name_begin) + 2;
  const std::string lines = std::string(depth, ' ') + nested_yaml(missing, written, depth, end);
  return {with_lines_after(document, table.begin, lines),
          with_text_at(document, table.begin, table.end,
                       (table.begin == table.end ? " {" : "{") + inline_yaml(missing, written) + "}")};
}

}  // namespace

TextFormat yaml_format() { return {read_yaml, written_yaml, added_yaml}; }

}  // namespace krigtune::runner
