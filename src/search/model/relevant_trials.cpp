// A quarter of the rows goes to the best values, because the next trial will be near them; a quarter to the
// surroundings of the best one, where the next gain is likely; and half to the rest of the space, so that the model
// knows every part of it. Gonzalez 1985 ("Clustering to minimize the maximum intercluster distance") shows that with
// the farthest point taken each time, every point is at most twice as far from those taken as under the best choice of
// the same number.
#include "search/model/relevant_trials.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace krigtune::search {
namespace {

constexpr Eigen::Index kShareOfTheBest = 4;  // one row in four for the best values, one in four around the best one

class RowChoice {
 public:
  explicit RowChoice(const surrogate::Points& points)
      : points_(points),
        taken_(static_cast<std::size_t>(points.size()), false),
        distance_(Eigen::VectorXd::Constant(points.size(), std::numeric_limits<double>::max())) {}

  void take(Eigen::Index row) {
    if (taken_[static_cast<std::size_t>(row)]) return;
    taken_[static_cast<std::size_t>(row)] = true;
    ++count_;
    distance_ = distance_.cwiseMin(squared_distances(points_, points_, row));
    distance_(row) = -1.0;  // also if another row is the same point
  }
  /// Takes the first `count` rows with the smallest keys that are not taken yet. Of equal keys the earlier comes first.
  void take_smallest(const Eigen::VectorXd& keys, Eigen::Index count) {
    std::vector<Eigen::Index> order(taken_.size());
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) { return keys(a) < keys(b); });
    for (const Eigen::Index row : order) {
      if (count == 0) return;
      if (taken_[static_cast<std::size_t>(row)]) continue;
      take(row);
      --count;
    }
  }
  void fill_gaps(Eigen::Index most) {
    while (count_ < most) {
      Eigen::Index farthest = 0;
      distance_.maxCoeff(&farthest);
      take(farthest);
    }
  }
  std::vector<Eigen::Index> rows() const {
    std::vector<Eigen::Index> rows;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) rows.push_back(static_cast<Eigen::Index>(i));
    }
    return rows;
  }

 private:
  const surrogate::Points& points_;
  std::vector<bool> taken_;
  Eigen::VectorXd distance_;  ///< squared, to the nearest row that is taken
  Eigen::Index count_ = 0;
};

std::vector<Eigen::Index> all_rows(Eigen::Index count) {
  std::vector<Eigen::Index> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), Eigen::Index{0});
  return rows;
}

}  // namespace

Eigen::VectorXd squared_distances(const surrogate::Points& points, const surrogate::Points& others, Eigen::Index row) {
  Eigen::VectorXd result = (points.ordered.rowwise() - others.ordered.row(row)).rowwise().squaredNorm();
  for (Eigen::Index column = 0; column < points.categories.cols(); ++column) {
    const int category = others.categories(row, column);
    result += (points.categories.col(column).array() != category).cast<double>().matrix();
  }
  return result;
}

std::vector<Eigen::Index> relevant_rows(const surrogate::Points& points, const Eigen::VectorXd& values,
                                        Eigen::Index most) {
  if (points.size() <= most) return all_rows(points.size());
  RowChoice choice(points);
  choice.take_smallest(-values, most / kShareOfTheBest);
  Eigen::Index best = 0;
  values.maxCoeff(&best);
  choice.take_smallest(squared_distances(points, points, best), most / kShareOfTheBest);
  choice.fill_gaps(most);
  return choice.rows();
}

std::vector<Eigen::Index> spread_rows(const surrogate::Points& points, Eigen::Index most) {
  if (points.size() <= most) return all_rows(points.size());
  RowChoice choice(points);
  choice.take(0);
  choice.fill_gaps(most);
  return choice.rows();
}

std::vector<Eigen::Index> other_rows(const std::vector<Eigen::Index>& rows, Eigen::Index count) {
  std::vector<Eigen::Index> others;
  auto next = rows.begin();
  for (Eigen::Index row = 0; row < count; ++row) {
    if (next != rows.end() && *next == row) {
      ++next;
    } else {
      others.push_back(row);
    }
  }
  return others;
}

}  // namespace krigtune::search
