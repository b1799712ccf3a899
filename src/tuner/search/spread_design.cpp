#include "search/spread_design.h"

#include <algorithm>
#include <limits>

#include "krigtune/core/statistics.h"

namespace krigtune {
namespace {

constexpr double kDistanceTie = 1e-9;

// Squared distances from each of `points` to point `row` of `others`; a differing category counts as the full range.
Eigen::VectorXd squared_distances(const Points& points, const Points& others, Eigen::Index row) {
  Eigen::VectorXd result = (points.ordered.rowwise() - others.ordered.row(row)).rowwise().squaredNorm();
  for (Eigen::Index column = 0; column < points.categories.cols(); ++column) {
    const int category = others.categories(row, column);
    result += (points.categories.col(column).array() != category).cast<double>().matrix();
  }
  return result;
}

int most_frequent(const Eigen::VectorXi& values) {
  std::vector<int> counts(static_cast<std::size_t>(values.maxCoeff()) + 1, 0);
  for (const int value : values) ++counts[static_cast<std::size_t>(value)];
  return static_cast<int>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

// The middle of the candidates, column by column; need not be one of them.
Points middle_of(const Points& points) {
  Points middle = Points::zero(1, points.ordered.cols(), points.categories.cols());
  for (Eigen::Index column = 0; column < points.ordered.cols(); ++column) {
    const auto values = points.ordered.col(column);
    middle.ordered(0, column) = median({values.begin(), values.end()});
  }
  for (Eigen::Index column = 0; column < points.categories.cols(); ++column) {
    middle.categories(0, column) = most_frequent(points.categories.col(column));
  }
  return middle;
}

// At least one of those allowed; there must be one.
std::vector<bool> random_half(const std::vector<bool>& allowed, Rng& rng) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i]) indices.push_back(i);
  }
  rng.shuffle(indices);
  std::vector<bool> half(allowed.size(), false);
  for (std::size_t i = 0; i < (indices.size() + 1) / 2; ++i) half[indices[i]] = true;
  return half;
}

}  // namespace

std::size_t largest_or_draw(const Eigen::VectorXd& scores, const std::vector<bool>& allowed, Rng& rng) {
  std::vector<std::size_t> best;
  double best_score = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (!allowed[i]) continue;
    const double score = scores(static_cast<Eigen::Index>(i));
    if (score > best_score + kDistanceTie) best.clear();
    if (score >= best_score - kDistanceTie) best.push_back(i);
    best_score = std::max(best_score, score);
  }
  return best[rng.below(best.size())];
}

std::size_t farthest_candidate(const Candidates& candidates, const History& history, const Points& points,
                               const std::vector<bool>& all_allowed, Rng& rng) {
  const std::vector<bool> allowed = random_half(all_allowed, rng);
  std::vector<Configuration> asked;
  for (const Trial& trial : history) {
    if (counts(trial)) asked.push_back(trial.proposal.configuration);
  }
  if (asked.empty()) return largest_or_draw(-squared_distances(points, middle_of(points), 0), allowed, rng);
  const Points seen = candidates.encode(asked);
  Eigen::VectorXd nearest = Eigen::VectorXd::Constant(points.size(), std::numeric_limits<double>::max());
  for (Eigen::Index row = 0; row < seen.size(); ++row) {
    nearest = nearest.cwiseMin(squared_distances(points, seen, row));
  }
  return largest_or_draw(nearest, allowed, rng);
}

}  // namespace krigtune
