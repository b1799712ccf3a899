// Fronts, hypervolumes, and the expected hypervolume improvement.
//
// The volume that a point y adds to a front is that of the undominated z with r <= z <= y, so with independent
// objectives
//
//   EHVI = integral over the undominated z >= r of  prod_j P(Y_j >= z_j)  dz
//        = sum over disjoint boxes [l, u] of  prod_j (psi_j(l_j) - psi_j(u_j)),      psi_j(a) = E[max(Y_j - a, 0)]
//
// because d psi_j / da = -P(Y_j >= a). This is exact for every number of objectives and every distribution whose psi is
// known. For Normal(m, s^2), psi(a) = s h((m - a) / s) with h(u) = phi(u) + u Phi(u). (Emmerich, Deutz & Klinkenberg
// 2011, "Hypervolume-based expected improvement: monotonicity properties and exact computation"; the sum over few large
// boxes instead of all cells: Yang, Emmerich, Deutz & Baeck 2019, "Efficient computation of expected hypervolume
// improvement using box decomposition algorithms".)
//
// The boxes come from slices along the last objective: between two neighbouring levels z_i and z_(i+1), only the points
// with a last coordinate of at least z_(i+1) dominate anything, so the slice is what their other coordinates leave
// undominated, times [z_i, z_(i+1)]. With one objective left, that is everything above the largest.
#include "krigtune/surrogate/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune::surrogate {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool at_least_as_good(const Eigen::MatrixXd& points, Eigen::Index a, Eigen::Index b) {
  return (points.row(a).array() >= points.row(b).array()).all();
}

// Returns the rows in an order in which no row comes before one that dominates it: by decreasing first coordinates,
// equal ones by the next. Of equal rows the first comes first.
std::vector<Eigen::Index> best_first(const Eigen::MatrixXd& points) {
  std::vector<Eigen::Index> order(static_cast<std::size_t>(points.rows()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Eigen::Index>(i);
  std::stable_sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) {
    for (Eigen::Index j = 0; j < points.cols(); ++j) {
      if (points(a, j) != points(b, j)) return points(a, j) > points(b, j);
    }
    return false;
  });
  return order;
}

// Returns the front of the points that are better than the reference in every objective.
Eigen::MatrixXd front_above(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference) {
  std::vector<Eigen::Index> above;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    if ((points.row(i).array() > reference.transpose().array()).all()) above.push_back(i);
  }
  const Eigen::MatrixXd kept = points(above, Eigen::all);
  return kept(pareto_front(kept), Eigen::all);
}

// Returns the distinct values of a column, increasing.
std::vector<double> levels_of(const Eigen::MatrixXd& points, Eigen::Index column) {
  std::vector<double> levels(points.col(column).begin(), points.col(column).end());
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

std::vector<Eigen::Index> rows_from(const Eigen::MatrixXd& points, Eigen::Index column, double least) {
  std::vector<Eigen::Index> rows;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    if (points(i, column) >= least) rows.push_back(i);
  }
  return rows;
}

// The points are better than the reference.
double area(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference) {
  double sum = 0.0;
  double covered = reference(1);
  for (const Eigen::Index i : best_first(points)) {
    if (!(points(i, 1) > covered)) continue;
    sum += (points(i, 0) - reference(0)) * (points(i, 1) - covered);
    covered = points(i, 1);
  }
  return sum;
}

double volume(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference) {
  const Eigen::Index last = points.cols() - 1;
  if (points.rows() == 0) return 0.0;
  if (last == 0) return points.maxCoeff() - reference(0);
  if (last == 1) return area(points, reference);
  double sum = 0.0;
  double below = reference(last);
  for (const double level : levels_of(points, last)) {
    const Eigen::MatrixXd slice = points(rows_from(points, last, level), Eigen::seqN(0, last));
    sum += (level - below) * volume(slice(pareto_front(slice), Eigen::all), reference.head(last));
    below = level;
  }
  return sum;
}

}  // namespace

std::vector<Eigen::Index> pareto_front(const Eigen::MatrixXd& points) {
  std::vector<Eigen::Index> front;
  for (const Eigen::Index i : best_first(points)) {
    // With two objectives, the last member has the largest second coordinate, so that it alone decides.
    const bool is_dominated =
        points.cols() == 2
            ? !front.empty() && at_least_as_good(points, front.back(), i)
            : std::any_of(front.begin(), front.end(), [&](Eigen::Index j) { return at_least_as_good(points, j, i); });
    if (!is_dominated) front.push_back(i);
  }
  std::sort(front.begin(), front.end());
  return front;
}

double hypervolume(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference) {
  return volume(front_above(points, reference), reference);
}

UndominatedRegion::UndominatedRegion(const Eigen::MatrixXd& points, const Eigen::VectorXd& reference) {
  const Eigen::MatrixXd front = front_above(points, reference);
  for (Eigen::Index j = 0; j < reference.size(); ++j) {
    std::vector<double> levels = levels_of(front, j);
    levels.insert(levels.begin(), reference(j));
    levels.push_back(kInfinity);
    levels_.emplace_back(Eigen::Map<const Eigen::VectorXd>(levels.data(), static_cast<Eigen::Index>(levels.size())));
  }
  std::vector<Side> sides(levels_.size(), Side{0, 0});
  slice(front, dims() - 1, sides);
}

Eigen::Index UndominatedRegion::index_of(Eigen::Index objective, double level) const {
  const Eigen::VectorXd& levels = levels_[static_cast<std::size_t>(objective)];
  return std::lower_bound(levels.begin(), levels.end(), level) - levels.begin();
}

void UndominatedRegion::slice(const Eigen::MatrixXd& points, Eigen::Index objective, std::vector<Side>& sides) {
  Side& side = sides[static_cast<std::size_t>(objective)];
  const Eigen::Index last = levels_[static_cast<std::size_t>(objective)].size() - 1;
  if (objective == 0) {
    side = {points.rows() == 0 ? 0 : index_of(0, points.col(0).maxCoeff()), last};
    for (const Side& one : sides) {
      lower_.push_back(one.low);
      upper_.push_back(one.high);
    }
    return;
  }
  Eigen::Index below = 0;
  std::vector<double> tops = levels_of(points, objective);
  tops.push_back(kInfinity);
  for (const double top : tops) {
    side = {below, index_of(objective, top)};
    slice(points(rows_from(points, objective, top), Eigen::all), objective - 1, sides);
    below = side.high;
  }
}

double UndominatedRegion::expected_improvement(const std::vector<Eigen::VectorXd>& excess) const {
  double sum = 0.0;
  const std::size_t count = levels_.size();
  for (std::size_t first = 0; first < lower_.size(); first += count) {
    double product = 1.0;
    for (std::size_t j = 0; j < count; ++j) product *= excess[j](lower_[first + j]) - excess[j](upper_[first + j]);
    sum += product;
  }
  return sum;
}

std::vector<Eigen::VectorXd> normal_excess(const UndominatedRegion& region, const Eigen::VectorXd& mean,
                                           const Eigen::VectorXd& stddev) {
  std::vector<Eigen::VectorXd> excess;
  for (std::size_t j = 0; j < region.levels().size(); ++j) {
    const Eigen::VectorXd& levels = region.levels()[j];
    const double m = mean(static_cast<Eigen::Index>(j));
    const double s = stddev(static_cast<Eigen::Index>(j));
    Eigen::VectorXd values = Eigen::VectorXd::Zero(levels.size());
    for (Eigen::Index k = 0; k + 1 < levels.size(); ++k) {
      values(k) = s > 0.0 ? s * std::exp(log_h((m - levels(k)) / s)) : std::max(m - levels(k), 0.0);
    }
    excess.push_back(std::move(values));
  }
  return excess;
}

}  // namespace krigtune::surrogate
