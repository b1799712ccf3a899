#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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

/// Builds the value that the library reads. The library's own builder accepts any depth, although copying, comparing
/// and printing a value recurse over it, and searches an object for every key that it adds, which takes minutes for an
/// object of a few megabytes.
class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  enum class RepeatedKeys { kRefused, kLastCounts };

  /// `source` names the text in errors; empty: they do not name it. It must outlive the builder.
  JsonBuilder(const std::string& source, RepeatedKeys repeated) : source_(source), repeated_(repeated) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*elements*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = open_.back();
    auto& members = level.value->get_ref<Json::object_t&>();
    const auto added = level.places.emplace(std::move(name), members.size());
    level.last = added.first->second;
    if (added.second) {
      members.emplace_back(added.first->first, nullptr);
    } else if (repeated_ == RepeatedKeys::kRefused) {
      fail(pointer() + ": duplicate key", "keep one of them");
    }
    next_ = &member(level).second;
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    failed_at_ = byte;
    is_beyond_bounds_ = dynamic_cast<const Json::out_of_range*>(&error) != nullptr;
    failure_ = error.what();
    return false;
  }

  Json take() { return std::move(root_); }
  std::size_t failed_at() const { return failed_at_; }
  const std::string& failure() const { return failure_; }
  bool is_beyond_bounds() const { return is_beyond_bounds_; }  ///< of a number

  /// Returns the JSON pointer of the value that is being read.
  std::string pointer() const {
    std::string pointer;
    for (const Level& level : open_) {
      const std::size_t begun = &level == &open_.back() ? 0 : 1;  // an outer array has the inner one already
      const bool is_array = level.value->is_array();
      pointer += "/" + (is_array ? std::to_string(level.value->size() - begun) : member(level).first);
    }
    return pointer;
  }

 private:
  struct Level {
    Json* value;
    std::map<std::string, std::size_t> places = {};  // of the object's members
    std::size_t last = 0;                            // the member that the last key names
  };

  static Json::object_t::value_type& member(const Level& level) {
    return *(level.value->get_ref<Json::object_t&>().begin() + static_cast<std::ptrdiff_t>(level.last));
  }

  bool put(Json value) {
    place() = std::move(value);
    return true;
  }

  Json& place() {
    if (open_.empty()) return root_;
    Json& container = *open_.back().value;
    if (container.is_object()) return *next_;
    container.push_back(nullptr);
    return container.back();
  }

  bool open(Json container) {
    if (open_.size() >= kDeepestNesting) {
      fail(fmt::format("nested more than {} deep", kDeepestNesting), "fix its brackets");
    }
    Json& value = place();
    value = std::move(container);
    open_.push_back({&value});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw UserError(source_.empty() ? what : source_ + ": " + what, hint);
  }

  const std::string& source_;
  RepeatedKeys repeated_;
  Json root_;
  std::vector<Level> open_;  // the containers around the next value, from the root inwards
  Json* next_ = nullptr;     // where the next value of an object goes
  std::size_t failed_at_ = 0;
  std::string failure_;
  bool is_beyond_bounds_ = false;
};

bool build(std::string_view text, JsonBuilder& builder) { return Json::sax_parse(text.begin(), text.end(), &builder); }

// Replaces NaN, Infinity and -Infinity outside of strings.
std::string without_odd_numbers(std::string_view text, OddNumbers as) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    std::string_view word;
    for (const std::string_view odd : {"NaN", "Infinity", "-Infinity"}) {
      if (!in_string && rest.substr(0, odd.size()) == odd) word = odd;
    }
    if (!word.empty()) {
      result += as == OddNumbers::kNull ? "null" : fmt::format("\"{}\"", word);
      i += word.size();
      continue;
    }
    if (rest.front() == '"') in_string = !in_string;
    const std::size_t taken = in_string && rest.front() == '\\' ? 2 : 1;
    result += rest.substr(0, taken);
    i += taken;
  }
  return result;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::string plain = blank_out_extensions(text);
  if (plain.find_first_not_of(" \t\r\n", text.rfind(kByteOrderMark, 0) == 0 ? kByteOrderMark.size() : 0) ==
      std::string::npos) {
    throw UserError(source + ": /: the file is empty", "write { ... }");
  }
  JsonBuilder builder(source, JsonBuilder::RepeatedKeys::kRefused);
  if (build(plain, builder)) return builder.take();
  if (builder.is_beyond_bounds()) {
    throw UserError(fmt::format("{}: {}: the number is beyond all bounds", source, builder.pointer()),
                    "write a number below 1.8e308");
  }
  throw UserError(fmt::format("{}: not JSON at {}: {}", source, position_text(plain, builder.failed_at()),
                              short_reason(builder.failure())),
                  mend_of(plain, builder.failed_at(), builder.failure()));
}

Json parse_program_json(std::string_view text) {
  const std::string no_source;
  JsonBuilder builder(no_source, JsonBuilder::RepeatedKeys::kLastCounts);
  if (build(text, builder)) return builder.take();
  const std::size_t begin = builder.failure().find("] ");
  throw UserError("not JSON: " + builder.failure().substr(begin == std::string::npos ? 0 : begin + 2));
}

Json json_or_discarded(std::string_view text) {
  try {
    return parse_program_json(text);
  } catch (const UserError&) {
    return Json::value_t::discarded;
  }
}

Json python_json_or_discarded(std::string_view text, OddNumbers as) {
  Json json = json_or_discarded(text);
  return json.is_discarded() ? json_or_discarded(without_odd_numbers(text, as)) : json;
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
