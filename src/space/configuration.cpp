#include "space/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::space {
namespace {

std::optional<double> parse_number(const std::string& text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_kind(const std::string& name, const Value& value, const std::string& expected) {
  throw UserError(fmt::format("'{}' is {}, where {} was expected", name, to_string(value), expected), "fix its value");
}

}  // namespace

std::string to_string(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  return std::get<std::string>(value);
}

Value number_value(double number) {
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (std::abs(number) <= kExactIntegers && number == std::trunc(number)) return static_cast<std::int64_t>(number);
  return number;
}

std::optional<std::int64_t> integer_of(const Value& value) {
  const double* number = std::get_if<double>(&value);
  const Value whole = number == nullptr ? value : number_value(*number);
  if (const auto* integer = std::get_if<std::int64_t>(&whole)) return *integer;
  return std::nullopt;
}

bool is_number(const Value& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

double as_number(const Value& value) {
  assert(!std::holds_alternative<std::string>(value));
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

bool same_value(const Value& a, const Value& b) {
  if (a.index() == b.index()) return a == b;
  return is_number(a) && is_number(b) && as_number(a) == as_number(b);
}

Json to_json(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return json_number(*number);
  return std::visit([](const auto& alternative) { return Json(alternative); }, value);
}

Value value_from_json(const Json& json, const std::string& where) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_integer()) {
    const bool too_large = json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX;
    return too_large ? Value(json.get<double>()) : Value(json.get<std::int64_t>());
  }
  if (json.is_number()) return number_value(json.get<double>());
  throw UserError(fmt::format("{}: a number, a string, true or false was expected, not {}", where, json.dump()),
                  "write one value");
}

Value value_from_text(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return integer;
  if (const auto number = parse_number(text)) return number_value(*number);
  return text;
}

const Value* Configuration::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

void Configuration::set(const std::string& name, Value value) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.first == name; });
  if (found == entries_.end()) {
    entries_.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void Configuration::erase(const std::string& name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

std::int64_t Configuration::integer(const std::string& name, std::int64_t fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (const std::optional<std::int64_t> integer = integer_of(*value)) return *integer;
  refuse_kind(name, *value, "an integer");
}

bool Configuration::boolean(const std::string& name, bool fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  refuse_kind(name, *value, "true or false");
}

std::string Configuration::text() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : entries_) parts.push_back(name + "=" + to_string(value));
  return join(parts, " ");
}

bool operator==(const Configuration& a, const Configuration& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const Configuration::Entry& entry) {
           const Value* other = b.find(entry.first);
           return other != nullptr && same_value(entry.second, *other);
         });
}

Json to_json(const Configuration& configuration) {
  Json json = Json::object();
  for (const auto& [name, value] : configuration) json[name] = to_json(value);
  return json;
}

Configuration configuration_from_json(const Json& json, const std::string& source, const std::string& pointer) {
  const JsonObject object(json, source, pointer);
  Configuration configuration;
  for (const auto& item : json.items()) {
    configuration.set(item.key(), value_from_json(item.value(), source + ": " + object.pointer(item.key())));
  }
  return configuration;
}

}  // namespace krigtune::space
