#pragma once
#include <Eigen/Core>
#include <optional>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/maximize.h"

namespace krigtune::surrogate {

/// The allowed ones, with their features.
Points finished(const MixedSpace& space, const Points& points);
/// Moves what is outside of the space, or between the values of a column, to the nearest point of it; without
/// features.
Points snapped(const MixedSpace& space, Points points);
/// Position of a value of a gridded column.
Eigen::Index position_of(const OrderedDimension& dimension, double value);
/// All points, allowed or not, without features; none if there are more than `limit`.
std::optional<Points> enumerated(const MixedSpace& space, Eigen::Index limit);
/// `count` points around `centre` (one point of the space), at all scales.
Points scattered_around(const MixedSpace& space, const Points& centre, Eigen::Index count, Rng& rng);

}  // namespace krigtune::surrogate
