#include "krigtune/surrogate/maximize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "krigtune/core/error.h"
#include "search/local_search.h"
#include "search/mixed_space.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

/// Starts are at least so far apart in one column: more of one peak climb to the same top.
constexpr double kApart = 0.1;

bool is_near(const Points& points, Index i, Index j) {
  return ((points.ordered.row(i) - points.ordered.row(j)).array().abs() < kApart).all() &&
         points.categories.row(i) == points.categories.row(j);
}

/// Rows of the best points that are not near a better one.
std::vector<Index> best_rows(const Points& points, const VectorXd& scores, Index count) {
  std::vector<Index> order(static_cast<std::size_t>(points.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return scores[a] > scores[b]; });
  std::vector<Index> rows;
  for (const Index row : order) {
    if (static_cast<Index>(rows.size()) == count) break;
    if (std::none_of(rows.begin(), rows.end(), [&](Index better) { return is_near(points, row, better); }))
      rows.push_back(row);
  }
  return rows;
}

Points first_points(const MixedSpace& space, const Points& hints, Rng& rng, Index count) {
  Points points = space.sample(count, rng);
  if (hints.size() == 0) return points;
  const Points inside = snapped(space, hints);
  Points near = inside.rows({});
  near.append(inside);
  for (Index i = 0; i < inside.size(); ++i)
    near.append(scattered_around(space, inside.slice(i, 1), std::max(count / 4 / inside.size(), Index{1}), rng));
  near = finished(space, near);
  if (near.size() > 0) points.append(near);
  return points;
}

}  // namespace

void MaximizeOptions::validate() const {
  if (samples < 1) throw UserError("samples must be 1 at least");
  if (starts < 0 || rounds < 0) throw UserError("starts and rounds must not be negative");
  if (evaluations < 1) throw UserError("evaluations must be 1 at least");
}

Maximum maximize(const ScoreFunction& score, const MixedSpace& space, const Points& hints, Rng& rng,
                 const MaximizeOptions& options) {
  space.validate();
  options.validate();
  const auto all = enumerated(space, options.samples);
  const Points points = all ? finished(space, *all) : first_points(space, hints, rng, options.samples);
  LocalSearch search(score, space, options, rng);
  const VectorXd scores = search.scores(points);
  const Index row = best_candidate(scores);
  if (row < 0) return {};
  Maximum best{points.slice(row, 1), scores[row]};
  if (all) return best;
  for (const Index start : best_rows(points, scores, options.starts)) {
    Maximum found = search.climb({points.slice(start, 1), scores[start]});
    if (found.score > best.score) best = std::move(found);
  }
  return search.polish(std::move(best));
}

Index best_candidate(const VectorXd& scores, const std::vector<bool>& allowed) {
  assert(allowed.empty() || static_cast<Index>(allowed.size()) == scores.size());
  Index best = -1;
  for (Index i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i]) || (best >= 0 && !(scores[i] > scores[best]))) continue;
    if (allowed.empty() || allowed[static_cast<std::size_t>(i)]) best = i;
  }
  return best;
}

}  // namespace krigtune
