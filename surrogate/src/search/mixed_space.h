#pragma once
#include <Eigen/Core>
#include <optional>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/maximize.h"

namespace krigtune::surrogate {

/// Returns the points that are allowed, with their features.
Points finished(const MixedSpace& space, const Points& points);
/// Moves points outside the space, or between the values of a column, to the nearest point of the space; does not add
/// features.
Points snapped(const MixedSpace& space, Points points);
/// Returns the index of a value in a column that has listed values.
Eigen::Index position_of(const OrderedDimension& dimension, double value);
/// Returns all points, allowed or not, without features; nothing if there are more than `limit`.
std::optional<Points> enumerated(const MixedSpace& space, Eigen::Index limit);
/// Returns `count` points around `centre` (one point of the space), at all scales.
Points scattered_around(const MixedSpace& space, const Points& centre, Eigen::Index count, Rng& rng);

}  // namespace krigtune::surrogate
