#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/maximize.h"

namespace krigtune::surrogate {

/// Climbs from a point of the space to a local maximum of the score: continuous columns by gradients or by random
/// steps, the others by moves to neighbours, in turns. What it is made of must outlive it.
class LocalSearch {
 public:
  LocalSearch(const ScoreFunction& score, const MixedSpace& space, const MaximizeOptions& options, Rng& rng);
  Maximum climb(Maximum start);
  /// From a local maximum across ridges between continuous columns and the others: to neighbours that are better once
  /// their continuous columns have been climbed anew.
  Maximum polish(Maximum best);
  /// -inf for NaN.
  Eigen::VectorXd scores(const Points& points) const;

 private:
  /// One column's other value.
  struct Move {
    bool category;
    Eigen::Index column;
    double value;
    bool near;  ///< to a category or to the value next to it
  };
  bool take_best(const Points& proposed, Maximum& place) const;
  void ascend(Maximum& place);
  bool ascend_by_gradient(Maximum& place) const;
  void ascend_by_random_steps(Maximum& place);
  bool move(Maximum& place);
  std::vector<Move> moves_from(const Points& point) const;
  std::vector<Move> near_moves_from(const Points& point) const;
  static std::vector<std::vector<Move>> singly(const std::vector<Move>& moves);
  Points moved(const Points& point, const std::vector<std::vector<Move>>& moves) const;

  const ScoreFunction& score_;
  const MixedSpace& space_;
  const MaximizeOptions& options_;
  Rng& rng_;
  std::vector<Eigen::Index> continuous_;
};

}  // namespace krigtune::surrogate
