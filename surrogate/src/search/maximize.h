#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/maximize.h"

namespace krigtune::surrogate {

/// Climbs from a point of the space to a local maximum of the score. It alternates between continuous columns, which
/// move along gradients or by random steps, and the others, which move to neighbours. The constructor's arguments must
/// outlive it.
class LocalSearch {
 public:
  LocalSearch(const ScoreFunction& score, const MixedSpace& space, const MaximizeOptions& options, Rng& rng);
  Maximum climb(Maximum start);
  /// Crosses ridges between continuous and other columns, starting at a local maximum: it moves to neighbours that are
  /// better after climbing again along their continuous columns.
  Maximum polish(Maximum best);
  /// Returns the scores, with -inf instead of NaN.
  Eigen::VectorXd scores(const Points& points) const;

 private:
  /// Another value of one column.
  struct Move {
    bool category;
    Eigen::Index column;
    double value;
    bool near;  ///< the move is to another category, or to the next or previous value
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
