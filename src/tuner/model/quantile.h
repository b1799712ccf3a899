#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace krigtune {

/// Of ascending values, at least one; interpolated linearly (Hyndman & Fan 1996, definition 7).
inline double quantile(const std::vector<double>& sorted, double probability) {
  const double position = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace krigtune
