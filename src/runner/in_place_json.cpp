// JSON with the byte positions of its values. nlohmann's parser does not provide positions, so a second pass walks over
// text that it has accepted. "//" comments and a trailing comma are allowed, as in sessions.
#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "runner/in_place_text.h"

namespace krigtune::runner {
namespace {

/// Walks over JSON that parses.
class JsonWalk {
 public:
  explicit JsonWalk(const std::string& text) : text_(text) {}

  TextNode value() {
    skip();
    TextNode node;
    node.begin = at_;
    if (next_is('{')) {
      node.is = TextNode::Is::kTable;
      members(node, '}');
    } else if (next_is('[')) {
      node.is = TextNode::Is::kList;
      members(node, ']');
    } else {
      scalar(node);
    }
    node.is_inline = node.is != TextNode::Is::kValue;
    node.end = at_;
    return node;
  }

 private:
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void skip() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (at_ == 0 && text_.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) at_ = kByteOrderMark.size();
    while (at_ < text_.size()) {
      if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void members(TextNode& node, char close) {
    ++at_;
    for (skip(); at_ < text_.size() && !next_is(close); skip()) {
      const std::size_t name_begin = at_;
      const std::string name =
          close == '}' ? parse_program_json(quoted()).get<std::string>() : std::to_string(node.children.size());
      if (close == '}') {
        skip();
        ++at_;  // ':'
      }
      node.children.push_back(value());
      node.children.back().name = name;
      node.children.back().name_begin = name_begin;
      skip();
      if (next_is(',')) ++at_;
    }
    ++at_;
  }

  std::string quoted() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void scalar(TextNode& node) {
    if (next_is('"')) {
      node.kind = "string";
      node.text = parse_program_json(quoted()).get<std::string>();
      return;
    }
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(" \t\r\n,]}/", at_), text_.size());
    node.text = text_.substr(begin, at_ - begin);
    node.kind = reads_as_number(node.text) ? "number" : "word";
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

Json parsed_json(const std::string& document) {
  const std::string source = "it";
  try {
    return parse_json(document, source);
  } catch (const UserError& error) {
    const std::string what = error.what();
    throw UserError(what.substr(what.rfind(source + ": ", 0) == 0 ? source.size() + 2 : 0));
  }
}

TextNode read_json(const std::string& document) {
  const Json json = parsed_json(document);
  if (!json.is_structured()) throw UserError("it is not a JSON object", "name a file of {...}");
  return JsonWalk(document).value();
}

std::string written_json(const std::string& /*document*/, const NewValue& value, const TextNode* old) {
  const bool was_quoted = old != nullptr && old->kind == "string" && stays_quoted(value, *old);
  const bool is_word = !value.is_text && !json_or_discarded(value.text).is_discarded();
  return is_word && (!was_quoted || is_null(value)) ? value.text : Json(value.text).dump();
}

std::string nested_json(const std::vector<std::string>& names, const std::string& written) {
  std::string text = written;
  for (std::size_t i = names.size(); i-- > 0;) {
    text = fmt::format("{}: {}", Json(names[i]).dump(), text);
    if (i > 0) text = fmt::format("{{{}}}", text);
  }
  return text;
}

std::vector<std::string> added_json(const std::string& document, const TextNode& table,
                                    const std::vector<std::string>& /*path*/, const std::vector<std::string>& missing,
                                    const std::string& written) {
  const std::string member = nested_json(missing, written);
  if (table.is != TextNode::Is::kTable) return {};
  if (table.children.empty()) return {with_text_at(document, table.begin + 1, table.begin + 1, member)};
  // The new member is separated like the last one: on a line of its own or on the same line.
  const TextNode& last = table.children.back();
  const std::size_t blanks = document.find_last_not_of(" \t\r\n", last.name_begin - 1) + 1;
  const std::string separator = document.substr(blanks, last.name_begin - blanks);
  return {with_text_at(document, last.end, last.end, "," + separator + member)};
}

}  // namespace

TextFormat json_format() { return {read_json, written_json, added_json}; }

}  // namespace krigtune::runner
