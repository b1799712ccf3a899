#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/points.h"

// What of many trials a model is conditioned on: the cost of a Gaussian process grows with the cube of its
// observations.
namespace krigtune::search {

/// Up to so many observations the model is exact: all of them are conditioned on.
inline constexpr Eigen::Index kMostExact = 256;

/// Squared distances from each of `points` to point `row` of `others` in the encoded space; a differing category counts
/// as a whole axis.
Eigen::VectorXd squared_distances(const surrogate::Points& points, const surrogate::Points& others, Eigen::Index row);

/// Rows of `points`, ascending, that stand for all: `most` of them, or all where there are no more. A quarter have the
/// largest values (n of them), a quarter lie nearest to the largest one, and the others fill the gaps: each in turn is
/// the farthest from those before it. O(n * most).
std::vector<Eigen::Index> relevant_rows(const surrogate::Points& points, const Eigen::VectorXd& values,
                                        Eigen::Index most);

/// Likewise where there is no best: all of them fill gaps.
std::vector<Eigen::Index> spread_rows(const surrogate::Points& points, Eigen::Index most);

/// The rows of 0 to `count` - 1 that are not among `rows`, which ascend.
std::vector<Eigen::Index> other_rows(const std::vector<Eigen::Index>& rows, Eigen::Index count);

}  // namespace krigtune::search
