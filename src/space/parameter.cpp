// Parameters as sessions write them. The values of a range with steps are, for i = 0 ... n - 1 and t = i / (n - 1),
//
//   linear  min (1 - t) + max t
//   log     exp(log(min) (1 - t) + log(max) t)
//
// They are rounded if they are integers; both ends are exact.
#include "space/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"
#include "space/well_known.h"

namespace krigtune::space {
namespace {

// Longer lists are refused, because every value is examined and a range with steps serves as well.
constexpr std::size_t kMostListed = 20'000;
constexpr std::size_t kMostParameters = 300;  // the trials of a session are too few to learn about more parameters

// Text, booleans and numbers do not mix: there is no order between them.
std::size_t kind_of(const Value& value) { return is_number(value) ? std::variant_npos : value.index(); }

void read_list(const Json& list, const std::string& where, Parameter& parameter) {
  if (list.empty()) throw UserError(fmt::format("{}: the list is empty", where), "give it at least one value");
  if (list.size() > kMostListed) {
    throw UserError(
        fmt::format("{}: {} values are too many", where, list.size()),
        fmt::format("at most {}: write a range, {{\"min\", \"max\", \"steps\"}}, or choose fewer", kMostListed));
  }
  std::unordered_set<std::string> seen;
  for (const Json& item : list) {
    const std::string item_where = fmt::format("{}/{}", where, parameter.values.size());
    const Value value = value_from_json(item, item_where);
    const std::string same = is_number(value) ? fmt::format("{}", as_number(value) + 0.0)
                                              : fmt::format("{}: {}", value.index(), to_string(value));
    if (!seen.insert(same).second) {
      throw UserError(fmt::format("{}: duplicate value {}", item_where, to_string(value)), "keep one of them");
    }
    if (!parameter.values.empty() && kind_of(parameter.values.front()) != kind_of(value)) {
      throw UserError(fmt::format("{}: {} is of another kind than {}", item_where, item.dump(), list.front().dump()),
                      "write only numbers, only texts, or true and false");
    }
    parameter.values.push_back(value);
  }
  parameter.categorical = std::holds_alternative<std::string>(parameter.values.front());
}

enum class WrittenScale { kLinear, kLog, kLog2 };
constexpr EnumWords<WrittenScale, 3> kScaleWords = {
    {{"linear", WrittenScale::kLinear}, {"log", WrittenScale::kLog}, {"log2", WrittenScale::kLog2}}};
constexpr EnumWords<WrittenScale, 2> kListScaleWords = {
    {{"linear", WrittenScale::kLinear}, {"log", WrittenScale::kLog}}};
constexpr EnumWords<bool, 2> kTypeWords = {{{"integer", false}, {"real", true}}};

Codec<Expression> condition() {
  return {schema::not_empty(schema::text()),
          [](JsonObject& object, const std::string& key) {
            try {
              return Expression::parse(object.text(key, ""));
            } catch (const UserError& error) {
              object.fail(key, error.what(), "");
            }
          },
          [](const Expression& expression) { return Json(expression.text()); }};
}

constexpr const char* kWhenMeans = "a condition on other parameters and facts: the parameter exists only if it is true";

// {"values": [...], "scale": "log"}: a list of numbers. With a scale it is ascending, and is placed on the axis of a
// range.
struct WrittenList {
  Json values;
  std::optional<WrittenScale> scale;
  std::optional<Expression> when;
};

Block<WrittenList> list_block() {
  Block<WrittenList> block("a list with a scale or a condition");
  const Codec<Json> list = {schema::not_empty(schema::list(Json::object())),
                            [](JsonObject& object, const std::string& key) { return object.require(key); },
                            [](const Json& values) { return values; }};
  block.key("values", &WrittenList::values, list, "the values").required();
  block.key("scale", &WrittenList::scale, one_of(kListScaleWords), "spacing of the values");
  block.key("when", &WrittenList::when, condition(), kWhenMeans);
  block.check([](JsonObject& object, const WrittenList& written) {
    if (!written.values.is_array()) object.fail("values", "a list was expected", "write [1, 2, 4]");
  });
  return block;
}

void read_object_list(JsonObject& object, Parameter& parameter) {
  WrittenList written;
  list_block().read(object, written);
  parameter.when = written.when;
  read_list(written.values, object.source() + ": " + object.pointer("values"), parameter);
  if (!written.scale) return;
  const bool is_log = *written.scale == WrittenScale::kLog;
  parameter.scale = is_log ? Scale::kLog : Scale::kLinear;
  const bool ascending = is_number(parameter.values.front()) &&
                         std::is_sorted(parameter.values.begin(), parameter.values.end(),
                                        [](const Value& a, const Value& b) { return as_number(a) < as_number(b); });
  if (!ascending) object.fail("values", "a scale needs numbers in ascending order", "sort them, or write a plain list");
  if (is_log && as_number(parameter.values.front()) <= 0.0) {
    object.fail("values/0", "a log scale starts above 0", "write \"scale\": \"linear\"");
  }
}

// A longer list can be neither enumerated nor sampled usefully; a coarser grid is equivalent in practice.
constexpr std::int64_t kMaxValues = 1'000'000;

struct WrittenRange {
  bool real = false;
  Value min;
  Value max;
  WrittenScale scale = WrittenScale::kLinear;
  std::optional<std::int64_t> steps;
  std::optional<Expression> when;
};

double between(const WrittenRange& range, double at) {
  const double low = as_number(range.min);
  const double high = as_number(range.max);
  const double value = range.scale == WrittenScale::kLog ? std::exp(std::log(low) * (1.0 - at) + std::log(high) * at)
                                                         : low * (1.0 - at) + high * at;
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

// Converts a number to an integer with all its digits, even 4e18.
void make_whole(JsonObject& object, const char* key, Value& end) {
  const double number = as_number(end);
  if (number != std::trunc(number)) {
    object.fail(key, fmt::format("a whole number was expected, not {}", to_string(end)),
                R"(write one without a fraction, or add "type": "real")");
  }
  end = object.integer(key, 0);
}

void check_steps(const JsonObject& object, const WrittenRange& range) {
  if (range.scale == WrittenScale::kLog && !range.steps && !range.real) {
    object.fail("", "a log scale needs \"steps\"", "add for example \"steps\": 16");
  }
  if (range.scale == WrittenScale::kLog2 && range.steps) {
    object.fail("steps", "a log2 scale takes every power of two", "leave it out");
  }
  const std::int64_t fewest = same_value(range.min, range.max) ? 1 : 2;
  if (range.steps && *range.steps < fewest) {
    object.fail("steps", fmt::format("{} steps cannot include both ends", *range.steps), "write 2 or more");
  }
  if (range.scale == WrittenScale::kLog2 || (range.real && !range.steps)) return;
  const double count =
      range.steps ? static_cast<double>(*range.steps) : as_number(range.max) - as_number(range.min) + 1.0;
  if (count > static_cast<double>(kMaxValues)) {
    object.fail(range.steps ? "steps" : "", fmt::format("{:.0f} values are too many", count),
                fmt::format("at most {}: choose fewer \"steps\"", kMaxValues));
  }
}

void check_range(JsonObject& object, WrittenRange& range) {
  if (range.real && range.scale == WrittenScale::kLog2) {
    object.fail("scale", "a log2 scale lists powers of two, integers all", "write \"scale\": \"log\"");
  }
  if (!range.real) {
    make_whole(object, "min", range.min);
    make_whole(object, "max", range.max);
  }
  if (as_number(range.min) > as_number(range.max)) {
    object.fail("min", fmt::format("min {} is above max {}", to_string(range.min), to_string(range.max)), "swap them");
  }
  if (range.scale != WrittenScale::kLinear && as_number(range.min) <= 0.0) {
    object.fail(
        "min",
        fmt::format("a {} scale starts above 0, not at {}", word_of(range.scale, kScaleWords), to_string(range.min)),
        "raise min, or drop \"scale\"");
  }
  check_steps(object, range);
}

Block<WrittenRange> range_block() {
  const Codec<Value> end = {
      schema::number(),
      [](JsonObject& object, const std::string& key) { return number_value(object.number(key, 0.0)); },
      [](const Value& value) { return to_json(value); }};
  Codec<bool> type = one_of(kTypeWords);
  type.read = [read = type.read](JsonObject& object, const std::string& key) {
    if (object.text(key, "") == "categorical") {
      object.fail(key, "there is no type 'categorical'", "list the values: [\"none\", \"cpu\"]");
    }
    return read(object, key);
  };
  Block<WrittenRange> block("a range");
  block.key("type", &WrittenRange::real, type, "type of the numbers");
  block.key("min", &WrittenRange::min, end, "the smallest value").required();
  block.key("max", &WrittenRange::max, end, "the largest value").required();
  block.key("scale", &WrittenRange::scale, one_of(kScaleWords),
            "spacing of the values: log requires \"steps\" unless the type is real, log2 takes the powers of two");
  block.key("steps", &WrittenRange::steps, integer_or_null(at_least(1)), "number of values, both ends included");
  block.key("when", &WrittenRange::when, condition(), kWhenMeans);
  block.check([](JsonObject& object, WrittenRange& range) { check_range(object, range); });
  return block;
}

void read_range(JsonObject& object, Parameter& parameter) {
  WrittenRange range;
  range_block().read(object, range);
  parameter.when = range.when;
  parameter.scale = range.scale == WrittenScale::kLinear ? Scale::kLinear : Scale::kLog;
  const bool is_log2 = range.scale == WrittenScale::kLog2;
  if (range.steps) {
    parameter.values = spaced(range);
  } else if (same_value(range.min, range.max)) {
    parameter.values = is_log2 ? powers_of_two(range) : std::vector<Value>{range.min};
  } else if (range.real) {
    parameter.range = RealRange{as_number(range.min), as_number(range.max)};
  } else {
    parameter.values = is_log2 ? powers_of_two(range) : every_integer(range);
  }
  if (parameter.values.empty() && !parameter.range) {
    object.fail("", fmt::format("no power of two lies between {} and {}", to_string(range.min), to_string(range.max)),
                "widen the range");
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

// Returns whether the range has every integer: then {"min", "max"} describes it as well as a thousand values.
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
  // Long lists of numbers are usually ascending ranges. If this one is not ascending, the result is still correct.
  constexpr std::size_t kLong = 32;
  if (values.size() > kLong && is_number(value) && is_number(values.front())) {
    const auto at = std::lower_bound(values.begin(), values.end(), value,
                                     [](const Value& a, const Value& b) { return as_number(a) < as_number(b); });
    if (at != values.end() && same_value(*at, value)) return static_cast<int>(at - values.begin());
  }
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
  if (parameters.size() > kMostParameters) {
    object.fail("", fmt::format("{} parameters are too many", parameters.size()),
                fmt::format("at most {}: leave out those that matter least", kMostParameters));
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

Json parameter_schema() {
  const auto unique = [](Json list) {
    list["uniqueItems"] = true;
    return schema::not_empty(std::move(list));
  };
  return schema::either(
      {unique(schema::list(schema::number(), "numbers")),
       unique(schema::list(schema::text(), "texts, which have no order")),
       unique(schema::list(schema::boolean(), "true and false")), range_block().schema(), list_block().schema()},
      "A list of values, or a range");
}

// docs/parameters.md, made from the tables so that it cannot disagree with them.
namespace {

constexpr const char* kIntroduction = R"(# Parameters, conditions and constraints

This page is made from the tables in the program (`test_space_well_known --write-reference docs/parameters.md`).

## Well-known parameters

A parameter may have any name; these ones krigtune understands. Where a parameter changes nothing it has one canonical
value, the first of its range, so that no meaning is measured twice. A well-known parameter that is not in the space
stands for its default in constraints and conditions.

)";

constexpr const char* kAliases = R"(
### Other names

Frameworks and launchers have names of their own for the same parameters. Predictions, constraints and the batch of a session
with a workload read them as krigtune's, and a remark says so. If krigtune's own name is there too, it counts; of two other
names of one parameter the first in this table counts. krigtune-bench and the virtual clock take krigtune's names only.

| name | is krigtune's | so called by |
|---|---|---|
)";

constexpr const char* kFixed = R"(
### Parameters that do not vary

`"fixed": {"sequence_parallel": true}` gives a parameter one value. It is written into every configuration and every
export, constraints and predictions know it, and it is no dimension of the search and no column of a table.
What a session does not name has its default, except where the workload's framework usually sets something else (Megatron
and nanotron: `sequence_parallel` with tensor parallelism, and the distributed optimizer; FSDP: `zero_stage` 3).
`krigtune plan` lists what it assumes in this way.
)";

constexpr const char* kKinds = R"(
## Kinds of parameters

```jsonc
"space": {
  "zero_stage": [0, 1, 2, 3],                                      // a list of numbers: the values, in this order
  "overlap_comm": [true, false],
  "offload_optimizer": ["none", "cpu"],                            // a list of texts: categories, without an order
  "micro_batch": {"min": 1, "max": 64, "scale": "log2"},           // the powers of two from 1 to 64
  "workers": {"min": 0, "max": 8},                                 // every integer
  "reduce_bucket_size": {"min": 1e6, "max": 1e9, "scale": "log", "steps": 16},  // 16 integers, both ends included
  "lr": {"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log"},             // every real number between
  "dropout": {"type": "real", "min": 0, "max": 0.5, "steps": 6},                // 0, 0.1, 0.2, 0.3, 0.4, 0.5
  "warmup": {"values": [10, 100, 1000], "scale": "log"},           // a list that lies as numbers do on a log scale
  "stage3_prefetch_bucket_size": {"min": 1e6, "max": 1e8, "scale": "log", "steps": 5, "when": "zero_stage == 3"},
  "nvme_buffers": {"values": [4, 8], "when": "offload_optimizer == 'nvme' || offload_param == 'nvme'"}
}
```

`when`: the parameter exists only where the condition is true; elsewhere configurations lack it.
A space with a real range without `steps` cannot be counted or listed; it is sampled.

## Conditions

A constraint, and a `when`, is a condition over parameters and facts:

```text
||   &&   == != <= >= < >   + -   * / %   ! -   ( )  min(a, b, ...)  max(a, b, ...)      loosest first
names, numbers (1, 2.5, 1e6), true, false, 'text'
```

true and false are 1 and 0 in a calculation. Texts know `==` and `!=` only. Comparisons do not chain: write
`1 <= a && a <= 8`. A comparison with the result of a division by zero does not hold. Where a condition depends on a
parameter that does not exist in a configuration, it is unknown (Kleene: `false && unknown` is false): a constraint then
does not apply, a `when` does not hold.

```jsonc
"constraints": ["tensor_parallel <= gpus_per_node", "micro_batch * seq_len <= 65536", "!overlap_comm || zero_stage >= 1"]
```

## Facts

)";

std::string cell(std::string_view text) { return text.empty() ? "-" : std::string(text); }
std::string code(std::string_view text) { return text.empty() ? "-" : fmt::format("`{}`", text); }

}  // namespace

std::string parameter_reference() {
  std::string page = kIntroduction;
  page +=
      "| name | meaning | unit | no effect | DeepSpeed key | default | default range "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const WellKnownParameter& known : well_known_parameters()) {
    page += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", known.name, known.meaning, cell(known.unit),
                        cell(known.no_effect), code(known.deepspeed.key), to_string(known.default_value),
                        code(known.default_range));
  }
  page += kAliases;
  for (const WellKnownParameter& known : well_known_parameters()) {
    for (const OtherName& other : known.other_names) {
      page += fmt::format("| `{}` | `{}` | {} |\n", other.name, known.name, other.where);
    }
  }
  page += kFixed;
  page += kKinds;
  page += "| name | meaning |\n|---|---|\n";
  for (const KnownFact& fact : known_facts()) page += fmt::format("| `{}` | {} |\n", fact.name, fact.meaning);
  return page;
}

}  // namespace krigtune::space
