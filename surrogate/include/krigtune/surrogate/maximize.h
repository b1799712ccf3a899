#pragma once
#include <functional>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/acquisition.h"

namespace krigtune::surrogate {

/// An ordered column: every number in [0, 1], or the given ones.
struct OrderedDimension {
  std::vector<double> values;  ///< increasing, in [0, 1]; empty: continuous
};

/// A space too large to list: the product of its columns, less what is not allowed.
struct MixedSpace {
  std::vector<OrderedDimension> ordered;
  std::vector<int> categories;                                          ///< number of indices of each category column
  std::function<bool(const Points& points, Eigen::Index row)> allowed;  ///< empty: all; asked before features are there
  std::function<void(Points& points)> add_features;                     ///< fills points.features; empty: none

  void validate() const;  ///< else UserError
  /// Quasi-random (Halton 1960, scrambled by `rng`), with features; allowed ones only, so there may be fewer than
  /// `count`.
  Points sample(Eigen::Index count, Rng& rng) const;
};

struct MaximizeOptions {
  int samples = 1024;     ///< quasi-random points scored at first; a space of no more points is listed instead
  int starts = 8;         ///< the best of them and of those around the hints, climbed from
  int rounds = 50;        ///< at most, of one climb
  int evaluations = 100;  ///< at most, of one gradient ascent; ten times as many points where it goes without gradients
  void validate() const;
};

struct Maximum {
  Points point;  ///< one; none if nothing is allowed
  double score = 0.0;
};

/// Best point of `score` over the space: quasi-random points, `hints` (the incumbent, say) and points around them, then
/// from the best rounds of ascent on the continuous columns and moves to neighbours on the others. Ascent is by
/// gradients, but for two cases where it draws points around the best one: with features, which gradients hold fixed,
/// and where it runs into what is not allowed. Deterministic for an Rng. Scores may be -inf; NaN counts as that.
Maximum maximize(const ScoreFunction& score, const MixedSpace& space, const Points& hints, Rng& rng,
                 const MaximizeOptions& options = {});

/// Row of the largest score among those allowed (empty: all), the first of equals; -1 if there is none. A NaN is none.
Eigen::Index best_candidate(const Eigen::VectorXd& scores, const std::vector<bool>& allowed = {});

}  // namespace krigtune::surrogate
