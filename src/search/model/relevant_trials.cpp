// A quarter of the rows for the best, for the question is asked there; a quarter around the best of all, where the next
// gain is looked for; half for the rest of the space, so that no part of it is unknown to the model. Gonzalez 1985
// ("Clustering to minimize the maximum intercluster distance") shows that taking the farthest point each time leaves no
// point more than twice as far from those taken as the best choice of as many would.
#include "search/model/relevant_trials.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace krigtune::search {
namespace {

constexpr Eigen::Index kShareOfTheBest = 4;  // one in so many, and as many again around the best of all

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
    distance_(row) = -1.0;  // also where another row is the same point
  }
  /// The first `count` rows of the smallest keys that are not taken yet; the earlier of equals first.
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
  Eigen::VectorXd distance_;  ///< squared, to the nearest that is taken
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
