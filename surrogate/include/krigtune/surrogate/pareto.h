#pragma once
#include <Eigen/Core>
#include <vector>

/// Several objectives at once, larger is better in each. A point dominates another one if it is at least as good in
/// every objective and better in one. The front of a set are the points that none of the others dominates. Its
/// hypervolume is the volume of what it dominates above a reference point, and a new point is worth the volume that it
/// adds:
///
///   const UndominatedRegion open(values, reference);        // values: n x m
///   const double gain = open.expected_improvement(normal_excess(open, mean, stddev));
///
/// Matrices of points have one row per point and one column per objective.
namespace krigtune::surrogate {

/// Returns the rows that no other row dominates, in their order. Of equal rows only the first is returned. Rows must
/// not contain NaN.
std::vector<Eigen::Index> pareto_front(const Eigen::MatrixXd& points);

/// Returns the volume between `reference` (one value per objective) and the points: that of all z with reference <= z
/// <= p for one of the points p, in the product of the objectives' units. Points that are not better than the reference
/// in every objective add nothing. By a sweep for two objectives, and by slices along the last objective for more
/// (While, Hingston, Barone & Huband 2006, "A faster algorithm for calculating hypervolume"), which takes time
/// proportional to n^(m - 1) log n.
double hypervolume(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference);

/// What a set of points does not dominate above a reference point, as disjoint boxes: n + 1 of them for a front of n
/// points and two objectives, at most in proportion to n^(m - 1) for m.
class UndominatedRegion {
 public:
  UndominatedRegion(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference);

  /// Returns the coordinates of the boxes' sides: for each objective an increasing vector that begins with the
  /// reference and ends with infinity.
  const std::vector<Eigen::VectorXd>& levels() const { return levels_; }
  /// Returns the expected hypervolume improvement of a point with independent random objectives Y_j. excess[j](k) =
  /// E[max(Y_j - levels()[j](k), 0)], which is 0 at infinity. Exact for any distribution; see pareto.cpp.
  double expected_improvement(const std::vector<Eigen::VectorXd>& excess) const;
  Eigen::Index boxes() const { return static_cast<Eigen::Index>(lower_.size()) / dims(); }

 private:
  /// Indices into levels_ of the two sides of a box along one objective.
  struct Side {
    Eigen::Index low, high;
  };
  Eigen::Index dims() const { return static_cast<Eigen::Index>(levels_.size()); }
  Eigen::Index index_of(Eigen::Index objective, double level) const;
  void slice(const Eigen::MatrixXd& points, Eigen::Index objective, std::vector<Side>& sides);

  std::vector<Eigen::VectorXd> levels_;
  std::vector<Eigen::Index> lower_;  ///< dims() indices into the levels for each box
  std::vector<Eigen::Index> upper_;
};

/// Returns the argument of expected_improvement for Normal(mean_j, stddev_j^2), independent. A stddev may be 0.
std::vector<Eigen::VectorXd> normal_excess(const UndominatedRegion& region, const Eigen::VectorXd& mean,
                                           const Eigen::VectorXd& stddev);

}  // namespace krigtune::surrogate
