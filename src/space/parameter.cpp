#include "krigtune/space/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

// A longer list can neither be enumerated nor drawn from with any profit: a coarser grid says the same.
constexpr std::int64_t kMaxValues = 1'000'000;

struct Range {
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::optional<std::int64_t> steps;
};

// Points 0 .. steps-1 between the ends, rounded; `at` maps [0, 1] to a real between them. The ends are exact.
template <class At>
std::vector<Value> spaced(const Range& range, At at) {
  std::vector<Value> values;
  const std::int64_t last = *range.steps - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    std::int64_t value = range.min;
    if (i == last && last > 0) {
      value = range.max;
    } else if (i > 0) {
      value = std::llround(at(static_cast<double>(i) / static_cast<double>(last)));
    }
    if (values.empty() || std::get<std::int64_t>(values.back()) != value) values.emplace_back(value);
  }
  return values;
}

std::vector<Value> linear_values(const Range& range) {
  if (!range.steps) {
    std::vector<Value> values;
    for (std::int64_t offset = 0; offset <= range.max - range.min; ++offset) values.emplace_back(range.min + offset);
    return values;
  }
  const auto low = static_cast<double>(range.min);
  const double width = static_cast<double>(range.max) - low;
  return spaced(range, [&](double at) { return low + width * at; });
}

std::vector<Value> log_values(const Range& range) {
  const double low = std::log(static_cast<double>(range.min));
  const double width = std::log(static_cast<double>(range.max)) - low;
  return spaced(range, [&](double at) { return std::exp(low + width * at); });
}

std::vector<Value> powers_of_two(const Range& range) {
  std::vector<Value> values;
  for (std::int64_t power = 1; power <= range.max; power *= 2) {
    if (power >= range.min) values.emplace_back(power);
    if (power > range.max / 2) break;
  }
  return values;
}

void check_range(const JsonObject& object, const Range& range, const std::string& scale) {
  if (range.min > range.max) {
    object.fail("min", fmt::format("min {} is above max {}", range.min, range.max), "swap them");
  }
  if (scale != "linear" && range.min <= 0) {
    object.fail("min", fmt::format("a {} scale starts above 0, not at {}", scale, range.min),
                "raise min, or drop \"scale\"");
  }
  if (scale == "log" && !range.steps) object.fail("", "a log scale needs \"steps\"", "add for example \"steps\": 16");
  if (scale == "log2" && range.steps) object.fail("steps", "a log2 scale takes every power of two", "leave it out");
  const std::int64_t fewest = range.min == range.max ? 1 : 2;
  if (range.steps && *range.steps < fewest) {
    object.fail("steps", fmt::format("{} steps cannot hold both ends", *range.steps), "write 2 or more");
  }
  const double count = range.steps ? static_cast<double>(*range.steps)
                                   : static_cast<double>(range.max) - static_cast<double>(range.min) + 1.0;
  if (scale != "log2" && count > static_cast<double>(kMaxValues)) {
    object.fail(range.steps ? "steps" : "", fmt::format("{:.0f} values are too many", count),
                fmt::format("at most {}: choose fewer \"steps\"", kMaxValues));
  }
}

void refuse_unsupported(JsonObject& object) {
  const std::string type = object.text("type", "integer");
  if (type == "real") {
    object.fail("type", "real ranges are not supported yet", "list the values: [0.1, 0.2, 0.4]");
  }
  if (type != "integer") object.fail("type", fmt::format("unknown type '{}'", type), "leave it out");
  if (object.find("when") != nullptr) {
    object.fail("when", "conditional parameters are not supported yet",
                "leave it out (a knob without effect is never varied)");
  }
}

std::string read_scale(JsonObject& object, const std::vector<std::string>& known) {
  std::string scale = object.text("scale", "linear");
  if (std::find(known.begin(), known.end(), scale) == known.end()) {
    object.fail("scale", fmt::format("unknown scale '{}'", scale), suggestion(scale, known));
  }
  return scale;
}

std::int64_t required_integer(JsonObject& object, const std::string& key) {
  object.require(key);
  return object.integer(key, 0);
}

void read_range(JsonObject& object, Parameter& parameter) {
  refuse_unsupported(object);
  const std::string scale = read_scale(object, {"linear", "log", "log2"});
  const std::optional<std::int64_t> steps = object.optional_integer("steps");
  const Json* min = object.find("min");
  const Json* max = object.find("max");
  if (min == nullptr || max == nullptr) object.finish();  // a misspelt key is better news than a missing one
  const Range range{required_integer(object, "min"), required_integer(object, "max"), steps};
  object.finish();
  check_range(object, range, scale);
  parameter.scale = scale == "linear" ? Scale::kLinear : Scale::kLog;
  parameter.values = scale == "linear" ? linear_values(range)
                     : scale == "log"  ? log_values(range)
                                       : powers_of_two(range);
  if (parameter.values.empty()) {
    object.fail("", fmt::format("no power of two lies between {} and {}", range.min, range.max), "widen the range");
  }
}

// Text, booleans and numbers do not mix: there is no order between them.
std::size_t kind_of(const Value& value) { return is_number(value) ? std::variant_npos : value.index(); }

void read_list(const Json& list, const std::string& where, Parameter& parameter) {
  if (list.empty()) throw UserError(fmt::format("{}: the list is empty", where), "give it at least one value");
  for (const Json& item : list) {
    const std::string item_where = fmt::format("{}/{}", where, parameter.values.size());
    const Value value = value_from_json(item, item_where);
    if (parameter.index_of(value) >= 0) {
      throw UserError(fmt::format("{}: {} stands twice in the list", item_where, to_string(value)), "keep one of them");
    }
    if (!parameter.values.empty() && kind_of(parameter.values.front()) != kind_of(value)) {
      throw UserError(fmt::format("{}: {} is of another kind than {}", item_where, item.dump(), list.front().dump()),
                      "a list holds numbers only, texts only, or true and false");
    }
    parameter.values.push_back(value);
  }
  parameter.categorical = std::holds_alternative<std::string>(parameter.values.front());
}

// {"values": [...], "scale": "log"}: a list of numbers in ascending order that keeps the axis of the range it came
// from.
void read_scaled_list(JsonObject& object, Parameter& parameter) {
  const Json& list = object.require("values");
  const std::string scale = read_scale(object, {"linear", "log"});
  object.finish();
  if (!list.is_array()) object.fail("values", "a list was expected", "write [1, 2, 4]");
  read_list(list, object.source() + ": " + object.pointer("values"), parameter);
  parameter.scale = scale == "log" ? Scale::kLog : Scale::kLinear;
  const bool ascending = is_number(parameter.values.front()) &&
                         std::is_sorted(parameter.values.begin(), parameter.values.end(),
                                        [](const Value& a, const Value& b) { return as_number(a) < as_number(b); });
  if (!ascending) object.fail("values", "a scale needs numbers in ascending order", "sort them, or write a plain list");
  if (scale == "log" && as_number(parameter.values.front()) <= 0.0) {
    object.fail("values/0", "a log scale starts above 0", "write \"scale\": \"linear\"");
  }
}

Parameter read_parameter(const std::string& name, const Json& json, const std::string& source,
                         const std::string& pointer) {
  Parameter parameter;
  parameter.name = name;
  if (json.is_array()) {
    read_list(json, source + ": " + pointer, parameter);
  } else if (json.is_object()) {
    JsonObject object(json, source, pointer);
    json.contains("values") ? read_scaled_list(object, parameter) : read_range(object, parameter);
  } else {
    throw UserError(fmt::format("{}: {}: a list or a range was expected, not {}", source, pointer, json.dump()),
                    fmt::format("write [{}] or {{\"min\": 1, \"max\": 8}}", json.is_null() ? "1" : json.dump()));
  }
  return parameter;
}

}  // namespace

int Parameter::index_of(const Value& value) const {
  const auto found = std::find_if(values.begin(), values.end(), [&](const Value& v) { return same_value(v, value); });
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

std::vector<Parameter> read_parameters(const Json& space, const std::string& source, const std::string& pointer) {
  const JsonObject object(space, source, pointer);
  std::vector<Parameter> parameters;
  for (const auto& item : space.items()) {
    if (item.key().empty()) object.fail("", "a parameter without a name", "name it");
    parameters.push_back(read_parameter(item.key(), item.value(), source, object.pointer(item.key())));
  }
  if (parameters.empty())
    object.fail("", "the space has no parameters", "add for example \"zero_stage\": [0, 1, 2, 3]");
  return parameters;
}

Json to_json(const Parameter& parameter) {
  Json values = Json::array();
  for (const Value& value : parameter.values) values.push_back(to_json(value));
  if (parameter.categorical || parameter.scale == Scale::kRank) return values;
  return {{"values", values}, {"scale", parameter.scale == Scale::kLog ? "log" : "linear"}};
}

}  // namespace krigtune
