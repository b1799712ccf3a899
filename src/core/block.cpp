#include "krigtune/core/block.h"

#include <fmt/format.h>

#include <cmath>

#include "krigtune/core/text.h"

namespace krigtune {
namespace {

// What to write instead; a key that may be left out says so in its own meaning.
std::string mend_of_a_number(const char* kind, const NumberLimits& limits) {
  const std::string text = limits.text();
  return fmt::format("write {}{}{}", kind, text.empty() ? "" : " ", text);
}

void check(const JsonObject& object, const std::string& key, double value, const NumberLimits& limits,
           const char* kind) {
  if (limits.hold(value)) return;
  object.fail(key, fmt::format("{} is out of range", number_text(value)), mend_of_a_number(kind, limits));
}

}  // namespace

bool NumberLimits::hold(double value) const {
  return (value > low || (low_included && value == low)) && (value < high || (high_included && value == high));
}

std::string NumberLimits::text() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high) {
    const std::string begin = low_included ? fmt::format("from {}", number_text(low)) : "above " + number_text(low);
    const char* end = high_included ? (low_included ? "to" : "and up to") : (low_included ? "to below" : "and below");
    return fmt::format("{} {} {}", begin, end, number_text(high));
  }
  if (has_low) return low_included ? fmt::format("of {} or more", number_text(low)) : "above " + number_text(low);
  if (has_high) return high_included ? fmt::format("of {} or less", number_text(high)) : "below " + number_text(high);
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

Codec<double> number(const NumberLimits& limits) {
  return {limits.applied_to(schema::number()),
          [limits](JsonObject& object, const std::string& key) {
            const double value = object.number(key, 0.0);
            check(object, key, value, limits, "a number");
            return value;
          },
          [](const double& value) { return json_number(value); }};
}

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

std::int64_t detail::limited_integer(JsonObject& object, const std::string& key, const NumberLimits& limits) {
  const std::int64_t value = object.integer(key, 0);
  if (limits.hold(static_cast<double>(value))) return value;
  object.fail(key, fmt::format("{} is out of range", value), mend_of_a_number("an integer", limits));
}

void detail::refuse_word(const JsonObject& object, const std::string& key, const std::string& word,
                         const std::vector<std::string>& known) {
  object.fail(key, fmt::format("unknown value '{}'", word), suggestion(word, known));
}

}  // namespace krigtune
