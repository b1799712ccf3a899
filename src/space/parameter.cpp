#include "krigtune/space/parameter.h"

#include <fmt/format.h>

#include <algorithm>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "parameter_range.h"

namespace krigtune {
namespace {

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

// {"values": [...], "scale": "log"}: with a scale a list of numbers in ascending order, on the axis of a range.
void read_object_list(JsonObject& object, Parameter& parameter) {
  const Json& list = object.require("values");
  const bool has_scale = object.has("scale");
  const std::string scale = read_scale(object, {"linear", "log"});
  read_when(object, parameter);
  object.finish();
  if (!list.is_array()) object.fail("values", "a list was expected", "write [1, 2, 4]");
  read_list(list, object.source() + ": " + object.pointer("values"), parameter);
  if (!has_scale) return;
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
    json.contains("values") ? read_object_list(object, parameter) : read_range(object, parameter);
  } else {
    throw UserError(fmt::format("{}: {}: a list or a range was expected, not {}", source, pointer, json.dump()),
                    fmt::format("write [{}] or {{\"min\": 1, \"max\": 8}}", json.is_null() ? "1" : json.dump()));
  }
  return parameter;
}

// Of its range: {"min", "max"} says all, where a thousand values would say it, too.
bool is_every_integer(const Parameter& parameter) {
  if (parameter.scale != Scale::kLinear || parameter.categorical) return false;
  const auto* first = std::get_if<std::int64_t>(&parameter.values.front());
  for (std::size_t i = 0; first != nullptr && i < parameter.values.size(); ++i) {
    const auto* value = std::get_if<std::int64_t>(&parameter.values[i]);
    if (value == nullptr || *value - *first != static_cast<std::int64_t>(i)) return false;
  }
  return first != nullptr;
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
  Json json = Json::object();
  if (parameter.range) {
    json = {{"type", "real"}, {"min", json_number(parameter.range->min)}, {"max", json_number(parameter.range->max)}};
  } else if (is_every_integer(parameter)) {
    json = {{"min", to_json(parameter.values.front())}, {"max", to_json(parameter.values.back())}};
  } else {
    json["values"] = Json::array();
    for (const Value& value : parameter.values) json["values"].push_back(to_json(value));
  }
  const bool has_scale = !parameter.categorical && parameter.scale != Scale::kRank;
  if (has_scale) json["scale"] = parameter.scale == Scale::kLog ? "log" : "linear";
  if (parameter.when) json["when"] = parameter.when->text();
  return json.size() == 1 ? json["values"] : json;
}

}  // namespace krigtune
