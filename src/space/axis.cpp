#include "axis.h"

#include <algorithm>
#include <cmath>

namespace krigtune {

double axis_position(Scale scale, double low, double high, double value) {
  if (scale == Scale::kLog) return std::log(value / low) / std::log(high / low);
  // By halves, so that a range as wide as the numbers themselves does not overflow.
  return (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
}

double axis_value(Scale scale, double low, double high, double at) {
  if (scale == Scale::kLog) return low * std::exp(at * std::log(high / low));
  return low * (1.0 - at) + high * at;
}

double real_at(const Parameter& continuous, double at) {
  const RealRange& range = *continuous.range;
  if (at <= 0.0) return range.min;
  if (at >= 1.0) return range.max;
  return std::clamp(axis_value(continuous.scale, range.min, range.max, at), range.min, range.max);
}

}  // namespace krigtune
