#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/points.h"

// Selects the trials on which a model is conditioned, because the cost of a Gaussian process grows with the cube of its
// observations.
namespace krigtune::search {

/// Up to this number of observations the model is exact: it is conditioned on all of them.
inline constexpr Eigen::Index kMostExact = 256;

/// Returns the squared distances from each of `points` to point `row` of `others` in the encoded space; a differing
/// category counts as a whole axis.
Eigen::VectorXd squared_distances(const surrogate::Points& points, const surrogate::Points& others, Eigen::Index row);

/// Returns `most` representative rows of `points`, ascending, or all if there are no more. A quarter have the largest
/// values (n of them), a quarter are nearest to the largest one, and the others fill the gaps: each is the farthest
/// from those chosen before. O(n * most).
std::vector<Eigen::Index> relevant_rows(const surrogate::Points& points, const Eigen::VectorXd& values,
                                        Eigen::Index most);

/// Does the same without values: all rows fill gaps.
std::vector<Eigen::Index> spread_rows(const surrogate::Points& points, Eigen::Index most);

/// Returns the rows of 0 to `count` - 1 that are not among `rows`, which must be ascending.
std::vector<Eigen::Index> other_rows(const std::vector<Eigen::Index>& rows, Eigen::Index count);

}  // namespace krigtune::search
