#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"

namespace krigtune {
namespace {

// Overwrites comments and trailing commas with blanks, so that all other text keeps its position for error messages.
std::string blank_out_extensions(std::string_view text) {
  std::string out(text);
  bool quoted = false;
  bool after_value = false;  // the comma of "[,]" follows no value; the parser refuses it
  std::size_t last_comma = std::string::npos;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char c = out[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '/' && i + 1 < out.size() && out[i + 1] == '/') {
      while (i < out.size() && out[i] != '\n') out[i++] = ' ';
    } else if ((c == '}' || c == ']') && last_comma != std::string::npos) {
      out[last_comma] = ' ';
      last_comma = std::string::npos;
      after_value = true;
    } else if (c == ',') {
      last_comma = after_value ? i : std::string::npos;
      after_value = false;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      last_comma = std::string::npos;
      after_value = c != '{' && c != '[';
      quoted = c == '"';
    }
  }
  return out;
}

std::string position_text(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t last_break = before.rfind('\n');
  const std::size_t column = last_break == std::string_view::npos ? before.size() + 1 : before.size() - last_break;
  return fmt::format("line {}, column {}", line, column);
}

// Returns the value as JSON. A long one is cut, because it is quoted in one line.
std::string quoted(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump();
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // do not cut within a UTF-8 character
  return text.substr(0, end) + "...";
}

// Returns the library's message without its prefixes and without the text that it read last, which may have any length
// and form.
std::string short_reason(const std::string& message) {
  std::string reason = message;
  for (const std::string_view prefix : {"] ", ": ", " - "}) {
    const std::size_t at = reason.find(prefix);
    if (at != std::string::npos) reason = reason.substr(at + prefix.size());
  }
  const std::size_t last_read = reason.find("; last read: '");
  if (last_read == std::string::npos) return reason;
  const std::size_t rest = reason.rfind("'; expected ");
  return reason.substr(0, last_read) + (rest == std::string::npos ? "" : reason.substr(rest + 1));
}

std::string mend_of(std::string_view text, std::size_t byte, const std::string& message) {
  const auto says = [&](std::string_view words) { return message.find(words) != std::string::npos; };
  const std::size_t comment = text.substr(0, byte + 1).rfind("/*");
  if (comment != std::string_view::npos && comment + 2 >= byte) return "write comments with //";
  if (says("UTF-8")) return "save the file as UTF-8";
  if (says("unexpected string literal; expected '")) return "put a comma before it";
  if (says("object key")) return "write names in double quotes, and values after a colon";
  if (says("unexpected end of input")) return "close what is open";
  if (says("; expected end of input")) return "keep one { ... } in the file";
  return "fix the syntax there";
}

/// Watches the parser and refuses what it would accept: duplicate keys, of which it keeps the last, and nesting so deep
/// that recursion over the result would overflow the stack.
class Watch {
 public:
  explicit Watch(const std::string& source) : source_(source) {}

  bool see(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        open(event == Json::parse_event_t::array_start);
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        next_item();
        break;
      case Json::parse_event_t::key:
        key(parsed.get<std::string>());
        break;
      case Json::parse_event_t::value:
        next_item();
        break;
    }
    return true;
  }

  /// Returns the JSON pointer of the value that is being parsed.
  std::string pointer() const {
    std::string pointer;
    for (const Level& level : levels_) {
      pointer += "/" + (level.is_array ? std::to_string(level.items) : level.last_key);
    }
    return pointer;
  }

 private:
  struct Level {
    bool is_array = false;
    std::size_t items = 0;
    std::string last_key;
    std::set<std::string> keys;
  };

  void open(bool is_array) {
    constexpr std::size_t kDeepest = 64;  // a session needs five
    if (levels_.size() >= kDeepest) {
      throw UserError(fmt::format("{}: nested more than {} deep", source_, kDeepest), "fix its brackets");
    }
    levels_.push_back({is_array, 0, "", {}});
  }

  void next_item() {
    if (!levels_.empty()) ++levels_.back().items;
  }

  void key(const std::string& name) {
    Level& level = levels_.back();
    level.last_key = name;
    if (level.keys.insert(name).second) return;
    throw UserError(fmt::format("{}: {}: duplicate key", source_, pointer()), "keep one of them");
  }

  const std::string& source_;
  std::vector<Level> levels_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::string plain = blank_out_extensions(text);
  if (plain.find_first_not_of(" \t\r\n", text.rfind(kByteOrderMark, 0) == 0 ? kByteOrderMark.size() : 0) ==
      std::string::npos) {
    throw UserError(source + ": /: the file is empty", "write { ... }");
  }
  Watch watch(source);
  try {
    return Json::parse(plain, [&](int, Json::parse_event_t event, Json& parsed) { return watch.see(event, parsed); });
  } catch (const Json::parse_error& error) {
    throw UserError(
        fmt::format("{}: not JSON at {}: {}", source, position_text(plain, error.byte), short_reason(error.what())),
        mend_of(plain, error.byte, error.what()));
  } catch (const Json::out_of_range&) {
    throw UserError(fmt::format("{}: {}: the number is beyond all bounds", source, watch.pointer()),
                    "write a number below 1.8e308");
  }
}

Json load_json(const std::filesystem::path& path) { return parse_json(read_text(path), path.string()); }

Json json_number(double value) {
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (std::abs(value) < kExactIntegers && value == std::trunc(value)) return static_cast<std::int64_t>(value);
  return value;
}

JsonObject::JsonObject(const Json& value, std::string source, std::string pointer)
    : value_(value), source_(std::move(source)), pointer_(std::move(pointer)) {
  if (!value.is_object()) fail("", fmt::format("an object was expected, not {}", value.type_name()), "write { ... }");
}

bool JsonObject::has(const std::string& key) const { return value_.contains(key) && !value_.at(key).is_null(); }

const Json* JsonObject::find(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  return has(key) ? &value_.at(key) : nullptr;
}

const Json& JsonObject::require(const std::string& key) {
  const Json* found = find(key);
  if (found != nullptr) return *found;
  // Report a misspelt key before a missing one: it is usually the cause.
  for (const auto& item : value_.items()) {
    const bool is_known = std::find(known_.begin(), known_.end(), item.key()) != known_.end();
    if (!is_known && nearest_name(item.key(), {key}) == key)
      fail(item.key(), "unknown key", suggestion(item.key(), {key}));
  }
  fail(key, "is missing", "add it");
}

double JsonObject::number(const std::string& key, double fallback) { return optional_number(key).value_or(fallback); }

std::int64_t JsonObject::integer(const std::string& key, std::int64_t fallback) {
  return optional_integer(key).value_or(fallback);
}

std::optional<double> JsonObject::optional_number(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) fail(key, fmt::format("a number was expected, not {}", quoted(*found)), "write a number");
  return found->get<double>();
}

std::optional<std::int64_t> JsonObject::optional_integer(const std::string& key) {
  const std::optional<double> value = optional_number(key);
  if (!value) return std::nullopt;
  const Json& json = value_.at(key);
  if (json.is_number_integer() && std::abs(*value) < 9e18) return json.get<std::int64_t>();  // keeps all digits
  if (std::abs(*value) > 9e18) fail(key, fmt::format("{} is too large", quoted(json)), "write one below 9e18");
  if (*value != std::trunc(*value)) {
    fail(key, fmt::format("a whole number was expected, not {}", quoted(json)), "write one without a fraction");
  }
  return static_cast<std::int64_t>(*value);
}

bool JsonObject::boolean(const std::string& key, bool fallback) {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) {
    fail(key, fmt::format("true or false was expected, not {}", quoted(*found)), "write true or false");
  }
  return found->get<bool>();
}

std::string JsonObject::text(const std::string& key, const std::string& fallback) {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_string()) fail(key, fmt::format("a string was expected, not {}", quoted(*found)), "write \"...\"");
  return found->get<std::string>();
}

std::vector<std::string> JsonObject::texts(const std::string& key) {
  const Json* found = find(key);
  std::vector<std::string> result;
  if (found == nullptr) return result;
  const bool all_texts =
      found->is_array() && std::all_of(found->begin(), found->end(), [](const Json& item) { return item.is_string(); });
  if (!all_texts) fail(key, "a list of strings was expected", "write [\"...\", ...]");
  for (const Json& item : *found) result.push_back(item.get<std::string>());
  return result;
}

JsonObject JsonObject::object(const std::string& key) { return {require(key), source_, pointer(key)}; }

void JsonObject::finish() const {
  for (const auto& item : value_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    fail(item.key(), "unknown key", suggestion(item.key(), known_));
  }
}

void JsonObject::fail(const std::string& key, const std::string& what, const std::string& hint) const {
  const std::string where = pointer(key);
  throw UserError(fmt::format("{}: {}: {}", source_, where.empty() ? "/" : where, what), hint);
}

std::string JsonObject::pointer(const std::string& key) const { return key.empty() ? pointer_ : pointer_ + "/" + key; }

}  // namespace krigtune
