// Ranges. The values of a range with steps are, for i = 0 ... n - 1 and t = i / (n - 1),
//
//   linear  min (1 - t) + max t
//   log     exp(log(min) (1 - t) + log(max) t)
//
// rounded where they are integers; both ends are exact.
#include "parameter_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

// A longer list can neither be enumerated nor drawn from with any profit: a coarser grid says the same.
constexpr std::int64_t kMaxValues = 1'000'000;

struct WrittenRange {
  Value min;
  Value max;
  std::string scale;
  std::optional<std::int64_t> steps;
  bool real = false;
};

double between(const WrittenRange& range, double at) {
  const double low = as_number(range.min);
  const double high = as_number(range.max);
  const double value =
      range.scale == "log" ? std::exp(std::log(low) * (1.0 - at) + std::log(high) * at) : low * (1.0 - at) + high * at;
  return std::clamp(value, low, high);
}

std::vector<Value> spaced(const WrittenRange& range) {
  std::vector<Value> values;
  const std::int64_t last = *range.steps - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    Value value = range.min;
    if (i == last && last > 0) {
      value = range.max;
    } else if (i > 0) {
      const double real = between(range, static_cast<double>(i) / static_cast<double>(last));
      value = range.real ? number_value(real) : Value(std::int64_t{std::llround(real)});
    }
    if (values.empty() || !same_value(values.back(), value)) values.push_back(value);
  }
  return values;
}

std::vector<Value> every_integer(const WrittenRange& range) {
  std::vector<Value> values;
  const std::int64_t min = std::get<std::int64_t>(range.min);
  const std::int64_t max = std::get<std::int64_t>(range.max);
  for (std::int64_t offset = 0; offset <= max - min; ++offset) values.emplace_back(min + offset);
  return values;
}

std::vector<Value> powers_of_two(const WrittenRange& range) {
  std::vector<Value> values;
  const std::int64_t max = std::get<std::int64_t>(range.max);
  for (std::int64_t power = 1; power <= max; power *= 2) {
    if (power >= std::get<std::int64_t>(range.min)) values.emplace_back(power);
    if (power > max / 2) break;
  }
  return values;
}

void check_steps(const JsonObject& object, const WrittenRange& range) {
  if (range.scale == "log" && !range.steps && !range.real) {
    object.fail("", "a log scale needs \"steps\"", "add for example \"steps\": 16");
  }
  if (range.scale == "log2" && range.steps) {
    object.fail("steps", "a log2 scale takes every power of two", "leave it out");
  }
  const std::int64_t fewest = same_value(range.min, range.max) ? 1 : 2;
  if (range.steps && *range.steps < fewest) {
    object.fail("steps", fmt::format("{} steps cannot hold both ends", *range.steps), "write 2 or more");
  }
  if (range.scale == "log2" || (range.real && !range.steps)) return;
  const double count =
      range.steps ? static_cast<double>(*range.steps) : as_number(range.max) - as_number(range.min) + 1.0;
  if (count > static_cast<double>(kMaxValues)) {
    object.fail(range.steps ? "steps" : "", fmt::format("{:.0f} values are too many", count),
                fmt::format("at most {}: choose fewer \"steps\"", kMaxValues));
  }
}

void check_range(const JsonObject& object, const WrittenRange& range) {
  if (range.real && range.scale == "log2") {
    object.fail("scale", "a log2 scale lists powers of two, integers all", "write \"scale\": \"log\"");
  }
  if (as_number(range.min) > as_number(range.max)) {
    object.fail("min", fmt::format("min {} is above max {}", to_string(range.min), to_string(range.max)), "swap them");
  }
  if (range.scale != "linear" && as_number(range.min) <= 0.0) {
    object.fail("min", fmt::format("a {} scale starts above 0, not at {}", range.scale, to_string(range.min)),
                "raise min, or drop \"scale\"");
  }
  check_steps(object, range);
}

Value read_end(JsonObject& object, const std::string& key, bool real) {
  object.require(key);
  const double number = object.number(key, 0.0);
  if (real) return number_value(number);
  if (number != std::trunc(number)) {
    object.fail(key, fmt::format("a whole number was expected, not {}", number),
                R"(write one without a fraction, or add "type": "real")");
  }
  return object.integer(key, 0);
}

bool read_is_real(JsonObject& object) {
  const std::string type = object.text("type", "integer");
  if (type == "real" || type == "integer") return type == "real";
  if (type == "categorical") {
    object.fail("type", "there is no type 'categorical'", "list the values: [\"none\", \"cpu\"]");
  }
  object.fail("type", fmt::format("unknown type '{}'", type), suggestion(type, {"real", "integer"}));
}

}  // namespace

std::string read_scale(JsonObject& object, const std::vector<std::string>& known) {
  std::string scale = object.text("scale", "linear");
  if (std::find(known.begin(), known.end(), scale) == known.end()) {
    object.fail("scale", fmt::format("unknown scale '{}'", scale), suggestion(scale, known));
  }
  return scale;
}

void read_when(JsonObject& object, Parameter& parameter) {
  if (object.find("when") == nullptr) return;
  const std::string text = object.text("when", "");
  try {
    parameter.when = Expression::parse(text);
  } catch (const UserError& error) {
    object.fail("when", error.what(), "");
  }
}

void read_range(JsonObject& object, Parameter& parameter) {
  WrittenRange range;
  range.real = read_is_real(object);
  range.scale = read_scale(object, {"linear", "log", "log2"});
  range.steps = object.optional_integer("steps");
  read_when(object, parameter);
  const Json* min = object.find("min");
  const Json* max = object.find("max");
  if (min == nullptr || max == nullptr) object.finish();  // a misspelt key is better news than a missing one
  range.min = read_end(object, "min", range.real);
  range.max = read_end(object, "max", range.real);
  object.finish();
  check_range(object, range);
  parameter.scale = range.scale == "linear" ? Scale::kLinear : Scale::kLog;
  if (range.steps) {
    parameter.values = spaced(range);
  } else if (same_value(range.min, range.max)) {
    parameter.values = range.scale == "log2" ? powers_of_two(range) : std::vector<Value>{range.min};
  } else if (range.real) {
    parameter.range = RealRange{as_number(range.min), as_number(range.max)};
  } else {
    parameter.values = range.scale == "log2" ? powers_of_two(range) : every_integer(range);
  }
  if (parameter.values.empty() && !parameter.range) {
    object.fail("", fmt::format("no power of two lies between {} and {}", to_string(range.min), to_string(range.max)),
                "widen the range");
  }
}

}  // namespace krigtune
