#include "journal/distributions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "journal/trial_record.h"

namespace krigtune::journal {
namespace {

constexpr const char* kCategorical = "CategoricalDistribution";
constexpr const char* kInt = "IntDistribution";
constexpr const char* kFloat = "FloatDistribution";
constexpr double kLargestInteger = 9007199254740992.0;  // 2^53: Optuna's internal numbers are doubles

bool is_integer(const space::Value& value) { return std::holds_alternative<std::int64_t>(value); }

// The values that a configuration can have. Choices of Optuna can also be null.
bool is_scalar(const Json& value) { return value.is_primitive() && !value.is_null(); }

Json categorical(const std::vector<space::Value>& choices) {
  Json list = Json::array();
  for (const space::Value& choice : choices) list.push_back(space::to_json(choice));
  return {{"name", kCategorical}, {"attributes", {{"choices", std::move(list)}}}};
}

// Returns the common step of the values: Optuna wants high - low to be a multiple of it.
std::int64_t common_step(const std::vector<space::Value>& values, std::int64_t low) {
  std::int64_t step = 0;
  for (const space::Value& value : values) step = std::gcd(step, std::get<std::int64_t>(value) - low);
  return std::max<std::int64_t>(step, 1);
}

Json integers(const std::vector<space::Value>& values, bool log) {
  std::int64_t low = std::get<std::int64_t>(values.front());
  std::int64_t high = low;
  for (const space::Value& value : values) {
    low = std::min(low, std::get<std::int64_t>(value));
    high = std::max(high, std::get<std::int64_t>(value));
  }
  log = log && low >= 1;
  const std::int64_t step = log ? 1 : common_step(values, low);
  return {{"name", kInt}, {"attributes", {{"log", log}, {"step", step}, {"low", low}, {"high", high}}}};
}

Json real_range(double low, double high, bool log) {
  log = log && low > 0.0;
  return {{"name", kFloat}, {"attributes", {{"step", nullptr}, {"low", low}, {"high", high}, {"log", log}}}};
}

Json reals(const std::vector<space::Value>& values, bool log) {
  double low = space::as_number(values.front());
  double high = low;
  for (const space::Value& value : values) {
    low = std::min(low, space::as_number(value));
    high = std::max(high, space::as_number(value));
  }
  return real_range(low, high, log);
}

// Returns the position of the choice, or -1.
int choice_index(const Json& choices, const space::Value& value) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (!is_scalar(choices[i])) continue;
    if (space::same_value(space::value_from_json(choices[i], "choices"), value)) return static_cast<int>(i);
  }
  return -1;
}

std::optional<Json> widened_integers(Json distribution, std::int64_t value) {
  Json& attributes = distribution["attributes"];
  const auto low = attributes["low"].get<std::int64_t>();
  const auto high = attributes["high"].get<std::int64_t>();
  const auto step = attributes["step"].get<std::int64_t>();
  if (attributes["log"].get<bool>() && value < 1) return std::nullopt;
  attributes["low"] = std::min(low, value);
  attributes["high"] = std::max(high, value);
  attributes["step"] = std::gcd(step, value - low);
  return distribution;
}

std::optional<Json> widened_reals(Json distribution, double value) {
  Json& attributes = distribution["attributes"];
  if (attributes["log"].get<bool>() && !(value > 0.0)) return std::nullopt;
  attributes["step"] = nullptr;  // the new bounds may not be multiples of a step that another program set
  attributes["low"] = std::min(attributes["low"].get<double>(), value);
  attributes["high"] = std::max(attributes["high"].get<double>(), value);
  return distribution;
}

bool is_number_or_null(const Json& value) { return value.is_number() || value.is_null(); }

bool has_attributes(const std::string& name, const Json& attributes) {
  if (!attributes.is_object()) return false;
  if (name == kCategorical) return attributes.contains("choices") && attributes["choices"].is_array();
  if (name != kInt && name != kFloat) return false;
  for (const char* key : {"log", "step", "low", "high"}) {
    if (!attributes.contains(key)) return false;
  }
  const bool step = name == kFloat ? is_number_or_null(attributes["step"]) : attributes["step"].is_number();
  return attributes["log"].is_boolean() && step && attributes["low"].is_number() && attributes["high"].is_number();
}

}  // namespace

std::optional<Json> first_distribution(const space::Parameter& parameter, const space::Value& first) {
  const bool log = parameter.scale == space::Scale::kLog;
  if (parameter.range) {
    if (!space::is_number(first)) return std::nullopt;
    const double value = space::as_number(first);
    return real_range(std::min(parameter.range->min, value), std::max(parameter.range->max, value), log);
  }
  std::vector<space::Value> values = parameter.values;
  const bool outside = parameter.index_of(first) < 0;
  if (outside) values.push_back(first);
  const bool numbers = std::all_of(values.begin(), values.end(), space::is_number);
  const bool list = parameter.categorical || parameter.scale == space::Scale::kRank;
  if (!numbers || (list && !outside)) return categorical(values);
  return std::all_of(values.begin(), values.end(), is_integer) ? integers(values, log) : reals(values, log);
}

std::optional<Json> widened(Json distribution, const space::Value& value) {
  const std::string name = distribution.at("name");
  if (name == kCategorical) {
    if (choice_index(distribution.at("attributes").at("choices"), value) < 0) return std::nullopt;
    return distribution;
  }
  if (!space::is_number(value)) return std::nullopt;
  if (name == kFloat) return widened_reals(std::move(distribution), space::as_number(value));
  const double number = space::as_number(value);
  if (number != std::trunc(number) || std::abs(number) > kLargestInteger) return std::nullopt;
  return widened_integers(std::move(distribution), static_cast<std::int64_t>(number));
}

Json internal_value(const Json& distribution, const space::Value& value) {
  if (distribution.at("name") != kCategorical) return space::as_number(value);
  return choice_index(distribution.at("attributes").at("choices"), value);
}

std::optional<space::Value> external_value(const Json& distribution, double internal) {
  const std::string name = distribution.at("name");
  if (name == kFloat) return internal;
  if (!(std::abs(internal) <= kLargestInteger)) return std::nullopt;
  const auto integer = static_cast<std::int64_t>(internal);
  if (name == kInt) return integer;
  const Json& choices = distribution.at("attributes").at("choices");
  if (integer < 0 || integer >= static_cast<std::int64_t>(choices.size())) return std::nullopt;
  const Json& choice = choices[static_cast<std::size_t>(integer)];
  if (!is_scalar(choice)) return std::nullopt;
  return space::value_from_json(choice, "choice");
}

std::optional<Json> read_distribution(const std::string& text) {
  Json json = python_json_or_discarded(text, OddNumbers::kNull);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return std::nullopt;
  if (!json.contains("attributes") || !has_attributes(json["name"], json["attributes"])) return std::nullopt;
  return json;
}

bool are_compatible(const Json& a, const Json& b) {
  if (a.at("name") != b.at("name")) return false;
  const char* key = a.at("name") == kCategorical ? "choices" : "log";
  return a.at("attributes").at(key) == b.at("attributes").at(key);
}

}  // namespace krigtune::journal
