// A configuration that differs from another one only in a knob that means nothing there would be measured twice. Where
// a knob means nothing says its row in well_known.cpp.
#include "canonical.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "krigtune/space/well_known.h"

namespace krigtune {
namespace {

using Conditions = std::map<std::string_view, Expression>;

const Conditions& conditions_by_name() {
  static const Conditions kConditions = [] {
    Conditions conditions;
    for (const WellKnownParameter& known : well_known_parameters()) {
      if (*known.no_effect_if != '\0') conditions.emplace(known.name, Expression::parse(known.no_effect_if));
    }
    return conditions;
  }();
  return kConditions;
}

// DeepSpeed has more knobs of stage 3 than the table has rows, and names them all alike.
const Expression* condition_of_family(std::string_view knob) {
  static const Expression kBelowStage3 = Expression::parse("zero_stage < 3");
  return knob.rfind("stage3_", 0) == 0 ? &kBelowStage3 : nullptr;
}

// Never a smaller bucket than `value`.
Value held_value(const Parameter& bucket, double elems, const Value& value) {
  if (bucket.range) return bucket.range->max < elems ? value : number_value(std::max(elems, bucket.range->min));
  const int smallest = smallest_that_holds(bucket, elems);
  return smallest < 0 ? value : bucket.values[static_cast<std::size_t>(smallest)];
}

}  // namespace

const Expression* condition_of_no_effect(const std::string& knob) {
  const auto found = conditions_by_name().find(knob);
  return found == conditions_by_name().end() ? condition_of_family(knob) : &found->second;
}

bool is_bucket(const std::string& knob) {
  const WellKnownParameter* known = find_well_known(knob);
  return known != nullptr && known->is_bucket;
}

int smallest_that_holds(const Parameter& bucket, double elems) {
  int smallest = -1;
  for (std::size_t i = 0; i < bucket.values.size(); ++i) {
    if (!is_number(bucket.values[i]) || as_number(bucket.values[i]) < elems) continue;
    const bool smaller =
        smallest < 0 || as_number(bucket.values[i]) < as_number(bucket.values[static_cast<std::size_t>(smallest)]);
    if (smaller) smallest = static_cast<int>(i);
  }
  return smallest;
}

Value first_value(const Parameter& parameter) {
  return parameter.range ? number_value(parameter.range->min) : parameter.values.front();
}

Value canonical_value(const Parameter& knob, const Value& value, bool no_effect,
                      const std::optional<std::int64_t>& parameter_count) {
  if (no_effect) return first_value(knob);
  if (!parameter_count || !is_bucket(knob.name) || !is_number(value)) return value;
  const auto all = static_cast<double>(*parameter_count);
  return as_number(value) < all ? value : held_value(knob, all, value);
}

}  // namespace krigtune
