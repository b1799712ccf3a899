// The blocks "space" and "baseline", as space/parameter.cpp and tuner/session_baseline.cpp read them.
#include <fmt/format.h>

#include "krigtune/space/well_known.h"
#include "session/schema_blocks.h"
#include "session/schema_words.h"

namespace krigtune::schema {
namespace {

constexpr const char* kParameter = "#/definitions/parameter";

Json when() { return not_empty(text("a condition over other parameters and facts: it exists only where this holds")); }

Json unique(Json list) {
  list["uniqueItems"] = true;
  return not_empty(std::move(list));
}

std::string meaning_of(const WellKnownParameter& parameter) {
  const std::string unit = *parameter.unit == '\0' ? "" : fmt::format(" ({})", parameter.unit);
  const std::string no_effect = *parameter.no_effect == '\0' ? "" : fmt::format("; no effect: {}", parameter.no_effect);
  return fmt::format("{}{}{}; default {}, for example {}", parameter.meaning, unit, no_effect,
                     to_string(parameter.default_value), parameter.default_range);
}

}  // namespace

Json parameter_shapes() {
  const Json scale =
      with_default(word("how the values are spaced: log needs \"steps\" unless real, log2 takes the powers of two",
                        {"linear", "log", "log2"}),
                   "linear");
  const Json range = block("a range", {{"type", with_default(word("of its numbers", {"integer", "real"}), "integer")},
                                       {"min", number("the smallest value"), true},
                                       {"max", number("the largest value"), true},
                                       {"scale", scale},
                                       {"steps", at_least(integer("so many values, both ends included"), 1)},
                                       {"when", when()}});
  const Json values =
      block("a list with more to say about it", {{"values", not_empty(list("the values", Json::object())), true},
                                                 {"scale", word("the axis on which they lie", {"linear", "log"})},
                                                 {"when", when()}});
  return either("A list of values, or a range",
                {unique(list("numbers", number(""))), unique(list("texts: no order between them", text(""))),
                 unique(list("true and false", boolean(""))), range, values});
}

Json space_block() {
  Json schema = map("What may vary: a parameter a key, in the order of all tables", {{"$ref", kParameter}});
  schema["minProperties"] = 1;
  schema["properties"] = Json::object();
  for (const WellKnownParameter& parameter : well_known_parameters()) {
    schema["properties"][parameter.name] = {{"description", meaning_of(parameter)},
                                            {"allOf", Json::array({{{"$ref", kParameter}}})}};
  }
  return schema;
}

Json fixed_block() {
  return map("Parameters of one value: predictions, constraints and exports know them, the search does not vary them",
             Json{{"type", {"number", "string", "boolean"}}});
}

Json baseline_block() {
  return map("Trial 0, what you use today; keys left out take their defaults; null: none is run",
             Json{{"type", {"number", "string", "boolean"}}});
}

}  // namespace krigtune::schema
