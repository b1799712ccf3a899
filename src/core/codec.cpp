#include "core/codec.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"

namespace krigtune::schema {
namespace {

Json of_type(const char* type, const std::string& meaning) { return with_meaning(meaning, Json{{"type", type}}); }

Json with(Json schema, const char* key, const Json& value) {
  schema[key] = value;
  return schema;
}

Json or_null(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else if (schema.contains("anyOf")) {
    schema["anyOf"].push_back({{"type", "null"}});
  } else if (schema.contains("type") && schema["type"] != "null") {
    schema["type"] = Json::array({schema["type"], "null"});
  }
  return schema;
}

}  // namespace

Json text(const std::string& meaning) { return of_type("string", meaning); }
Json number(const std::string& meaning) { return of_type("number", meaning); }
Json integer(const std::string& meaning) { return of_type("integer", meaning); }
Json boolean(const std::string& meaning) { return of_type("boolean", meaning); }

Json word(const std::vector<std::string>& names, const std::string& meaning) {
  return with_meaning(meaning, {{"enum", names}});
}

Json list(const Json& item, const std::string& meaning) { return with(of_type("array", meaning), "items", item); }

Json map(const Json& value, const std::string& meaning) {
  return with(of_type("object", meaning), "additionalProperties", value);
}

Json either(const std::vector<Json>& shapes, const std::string& meaning) {
  return with_meaning(meaning, {{"anyOf", Json(shapes)}});
}

Json scalar() { return {{"type", {"number", "string", "boolean"}}}; }

Json with_meaning(const std::string& meaning, Json schema) {
  if (meaning.empty()) return schema;
  Json described = {{"description", meaning}};
  schema.erase("description");
  described.update(schema);
  return described;
}

Json with_default(Json schema, const Json& value) { return with(std::move(schema), "default", value); }

Json not_empty(Json schema) {
  const char* key = schema["type"] == "array" ? "minItems" : "minLength";
  return with(std::move(schema), key, 1);
}

Json object(const std::string& meaning, const std::vector<Key>& keys) {
  Json schema = of_type("object", meaning);
  schema["additionalProperties"] = false;
  Json required = Json::array();
  schema["properties"] = Json::object();
  for (const Key& key : keys) {
    schema["properties"][key.name] = key.required ? key.schema : or_null(key.schema);
    if (key.required) required.push_back(key.name);
  }
  if (!required.empty()) schema["required"] = required;
  return schema;
}

}  // namespace krigtune::schema

namespace krigtune {
namespace {

// Returns "write a number above 0", followed by the alternative `or_else`.
std::string mend_of_a_number(const char* kind, const NumberLimits& limits, const std::string& or_else) {
  const std::string text = limits.text();
  return fmt::format("write {}{}{}{}", kind, text.empty() ? "" : " ", text, or_else);
}

Codec<double> limited_number(const NumberLimits& limits, const std::string& or_else) {
  return {limits.applied_to(schema::number()),
          [limits, or_else](JsonObject& object, const std::string& key) {
            const double value = object.number(key, 0.0);
            if (limits.hold(value)) return value;
            object.fail(key, fmt::format("{} is out of range", number_text(value)),
                        mend_of_a_number("a number", limits, or_else));
          },
          [](const double& value) { return json_number(value); }};
}

}  // namespace

bool NumberLimits::hold(double value) const {
  return (value > low || (low_included && value == low)) && (value < high || (high_included && value == high));
}

namespace {

// Writes a power of ten from 1e6 on as "1e6", because nobody wants to count its zeros.
std::string limit_text(double limit) {
  constexpr double kLongest = 1e6;
  const double power = std::log10(limit);
  return limit >= kLongest && power == std::round(power) ? fmt::format("1e{:.0f}", power) : number_text(limit);
}

}  // namespace

std::string NumberLimits::text() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high) {
    const std::string begin = low_included ? fmt::format("from {}", limit_text(low)) : "above " + limit_text(low);
    const char* end = high_included ? (low_included ? "to" : "and up to") : (low_included ? "to below" : "and below");
    return fmt::format("{} {} {}", begin, end, limit_text(high));
  }
  if (has_low) return low_included ? fmt::format("of {} or more", limit_text(low)) : "above " + limit_text(low);
  if (has_high) return high_included ? fmt::format("of {} or less", limit_text(high)) : "below " + limit_text(high);
  return "";
}

Json NumberLimits::applied_to(Json schema) const {
  if (std::isfinite(low)) schema[low_included ? "minimum" : "exclusiveMinimum"] = json_number(low);
  if (std::isfinite(high)) schema[high_included ? "maximum" : "exclusiveMaximum"] = json_number(high);
  return schema;
}

NumberLimits at_least(double low) { return {.low = low}; }
NumberLimits above(double low) { return {.low = low, .low_included = false}; }
NumberLimits from_to(double low, double high) { return {.low = low, .high = high}; }
NumberLimits from_to_below(double low, double high) { return {.low = low, .high = high, .high_included = false}; }
NumberLimits above_up_to(double low, double high) { return {.low = low, .high = high, .low_included = false}; }

Codec<double> number(const NumberLimits& limits, const std::string& example) {
  return limited_number(limits, example.empty() ? "" : ", as " + example);
}

Codec<double> number_or_null(const NumberLimits& limits) { return limited_number(limits, " or null"); }

Codec<bool> boolean() {
  return {schema::boolean(), [](JsonObject& object, const std::string& key) { return object.boolean(key, false); },
          [](const bool& value) { return Json(value); }};
}

Codec<std::string> text() {
  return {schema::text(), [](JsonObject& object, const std::string& key) { return object.text(key, ""); },
          [](const std::string& value) { return Json(value); }};
}

Codec<std::string> text_or_null() {
  Codec<std::string> codec = text();
  codec.write = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  return codec;
}

Codec<std::vector<std::string>> texts() {
  return {schema::list(schema::text()), [](JsonObject& object, const std::string& key) { return object.texts(key); },
          [](const std::vector<std::string>& value) { return Json(value); }};
}

std::int64_t detail::limited_integer(JsonObject& object, const std::string& key, const NumberLimits& limits,
                                     const std::string& or_else) {
  const std::int64_t value = object.integer(key, 0);
  if (limits.hold(static_cast<double>(value))) return value;
  object.fail(key, fmt::format("{} is out of range", value), mend_of_a_number("an integer", limits, or_else));
}

void detail::refuse_word(const JsonObject& object, const std::string& key, const std::string& word,
                         const std::vector<std::string>& known) {
  object.fail(key, fmt::format("unknown value '{}'", word), suggestion(word, known));
}

}  // namespace krigtune
