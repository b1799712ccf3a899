#pragma once
#include "krigtune/space/parameter.h"

namespace krigtune {

/// Where a number lies between `low` (0) and `high` (1) on a linear or logarithmic scale, beyond them too. On a
/// logarithmic one low and value are above 0.
double axis_position(Scale scale, double low, double high, double value);
/// Its inverse.
double axis_value(Scale scale, double low, double high, double at);

/// The number at a place of a real range's axis, never outside the range.
double real_at(const Parameter& continuous, double at);

}  // namespace krigtune
