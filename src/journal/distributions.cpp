#include "distributions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace krigtune {
namespace {

constexpr const char* kCategorical = "CategoricalDistribution";
constexpr const char* kInt = "IntDistribution";
constexpr const char* kFloat = "FloatDistribution";

bool is_integer(const Value& value) { return std::holds_alternative<std::int64_t>(value); }

Json categorical(const std::vector<Value>& choices) {
  Json list = Json::array();
  for (const Value& choice : choices) list.push_back(to_json(choice));
  return {{"name", kCategorical}, {"attributes", {{"choices", std::move(list)}}}};
}

// The values' common step: Optuna wants high - low to be a multiple of it.
std::int64_t common_step(const std::vector<Value>& values, std::int64_t low) {
  std::int64_t step = 0;
  for (const Value& value : values) step = std::gcd(step, std::get<std::int64_t>(value) - low);
  return std::max<std::int64_t>(step, 1);
}

Json integers(const std::vector<Value>& values, bool log) {
  std::int64_t low = std::get<std::int64_t>(values.front());
  std::int64_t high = low;
  for (const Value& value : values) {
    low = std::min(low, std::get<std::int64_t>(value));
    high = std::max(high, std::get<std::int64_t>(value));
  }
  log = log && low >= 1;
  const std::int64_t step = log ? 1 : common_step(values, low);
  return {{"name", kInt}, {"attributes", {{"log", log}, {"step", step}, {"low", low}, {"high", high}}}};
}

Json reals(const std::vector<Value>& values, bool log) {
  double low = as_number(values.front());
  double high = low;
  for (const Value& value : values) {
    low = std::min(low, as_number(value));
    high = std::max(high, as_number(value));
  }
  log = log && low > 0.0;
  return {{"name", kFloat}, {"attributes", {{"step", nullptr}, {"low", low}, {"high", high}, {"log", log}}}};
}

// The position of the choice, or -1.
int choice_index(const Json& choices, const Value& value) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (same_value(value_from_json(choices[i], "choices"), value)) return static_cast<int>(i);
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
  attributes["low"] = std::min(attributes["low"].get<double>(), value);
  attributes["high"] = std::max(attributes["high"].get<double>(), value);
  return distribution;
}

}  // namespace

Json first_distribution(const Parameter& parameter, const Value& first) {
  std::vector<Value> values = parameter.values;
  const bool outside = parameter.index_of(first) < 0;
  if (outside) values.push_back(first);
  const bool numbers = std::all_of(values.begin(), values.end(), is_number);
  const bool list = parameter.categorical || parameter.scale == Scale::kRank;
  if (!numbers || (list && !outside)) return categorical(values);
  const bool log = parameter.scale == Scale::kLog;
  return std::all_of(values.begin(), values.end(), is_integer) ? integers(values, log) : reals(values, log);
}

std::optional<Json> widened(Json distribution, const Value& value) {
  const std::string name = distribution.at("name");
  if (name == kCategorical) {
    if (choice_index(distribution.at("attributes").at("choices"), value) < 0) return std::nullopt;
    return distribution;
  }
  if (!is_number(value)) return std::nullopt;
  if (name == kFloat) return widened_reals(std::move(distribution), as_number(value));
  const double number = as_number(value);
  if (number != std::trunc(number)) return std::nullopt;
  return widened_integers(std::move(distribution), static_cast<std::int64_t>(number));
}

Json internal_value(const Json& distribution, const Value& value) {
  if (distribution.at("name") != kCategorical) return as_number(value);
  return choice_index(distribution.at("attributes").at("choices"), value);
}

Value external_value(const Json& distribution, double internal) {
  const std::string name = distribution.at("name");
  if (name == kCategorical) {
    return value_from_json(distribution.at("attributes").at("choices").at(static_cast<std::size_t>(internal)),
                           "choice");
  }
  if (name == kFloat) return internal;
  return static_cast<std::int64_t>(internal);
}

}  // namespace krigtune
