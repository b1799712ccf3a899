#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "krigtune/space/parameter.h"

namespace krigtune {

/// The condition under which a knob changes nothing: it then has one value, the first of its range. nullptr: it always
/// has an effect. It lives as long as the program.
const Expression* condition_of_no_effect(const std::string& knob);

/// Whether all sizes of this bucket that hold `elems` are alike: they are one value, the smallest of the range.
bool is_bucket(const std::string& knob);
/// Position of the smallest value of the list that holds `elems`, or -1.
int smallest_that_holds(const Parameter& bucket, double elems);

/// The value that stands for the meaning of `value`. `no_effect`: the condition holds.
Value canonical_value(const Parameter& knob, const Value& value, bool no_effect,
                      const std::optional<std::int64_t>& parameter_count);

/// The first of the list, or of the range.
Value first_value(const Parameter& parameter);

}  // namespace krigtune
