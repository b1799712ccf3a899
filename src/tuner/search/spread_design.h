#pragma once
#include <vector>

#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/history.h"

// The first trials of a search that nothing is known for. Private to this layer.
namespace krigtune {

/// The allowed candidate of the largest score; among equals one drawn by `rng`. There must be one.
std::size_t largest_or_draw(const Eigen::VectorXd& scores, const std::vector<bool>& allowed, Rng& rng);

/// The candidate (a row of `points`) farthest from everything asked, in the encoded space, a differing category as far
/// as a whole axis; the first one: nearest to the middle. Among a random half of those allowed: the design depends on
/// the seed, and no single far corner is in all of them. At least one must be allowed.
std::size_t farthest_candidate(const Candidates& candidates, const History& history, const Points& points,
                               const std::vector<bool>& allowed, Rng& rng);

}  // namespace krigtune
