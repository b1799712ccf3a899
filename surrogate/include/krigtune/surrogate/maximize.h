#pragma once
#include <functional>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/acquisition.h"

namespace krigtune::surrogate {

/// An ordered column: every number in [0, 1], or the given values only.
struct OrderedDimension {
  std::vector<double> values;  ///< increasing, in [0, 1]; empty if continuous
};

/// A space too large to list: the product of its columns, without the points that are not allowed.
struct MixedSpace {
  std::vector<OrderedDimension> ordered;
  std::vector<int> categories;  ///< number of indices of each category column
  /// empty: all are allowed; called before features are added
  std::function<bool(const Points& points, Eigen::Index row)> allowed;
  /// fills points.features; empty: there are no features
  std::function<void(Points& points)> add_features;

  void validate() const;  ///< throws UserError if invalid
  /// Returns quasi-random points (Halton 1960, scrambled by `rng`) with their features. Points that are not allowed are
  /// left out, so there may be fewer than `count`.
  Points sample(Eigen::Index count, Rng& rng) const;
};

struct MaximizeOptions {
  int samples = 1024;     ///< quasi-random points scored first; a space with no more points than this is listed instead
  int starts = 8;         ///< number of climbs, from the best of these points and of those around the hints
  int rounds = 50;        ///< limit for one climb
  int evaluations = 100;  ///< limit for one gradient ascent; without gradients, ten times as many points
  void validate() const;
};

struct Maximum {
  Points point;  ///< one point; none if nothing is allowed
  double score = 0.0;
};

/// Returns the best point found for `score` over the space. The search scores quasi-random points, the `hints` (for
/// example the incumbent) and points around them. From the best of these it alternates ascent on the continuous columns
/// with moves to neighbours on the others. The ascent uses gradients except in two cases, in which it draws points
/// around the best one: if there are features, because gradients hold those fixed, and if it runs into points that are
/// not allowed. The result is deterministic for a given Rng. Scores may be -inf; NaN counts as -inf.
Maximum maximize(const ScoreFunction& score, const MixedSpace& space, const Points& hints, Rng& rng,
                 const MaximizeOptions& options = {});

/// Returns the row of the largest score among those allowed (empty: all), the first of equal ones; -1 if there is none.
/// NaN scores are skipped.
Eigen::Index best_candidate(const Eigen::VectorXd& scores, const std::vector<bool>& allowed = {});

}  // namespace krigtune::surrogate
