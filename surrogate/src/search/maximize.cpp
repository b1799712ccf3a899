#include "krigtune/surrogate/maximize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "nlopt_minimizer.h"
#include "search/maximize.h"
#include "search/mixed_space.h"

namespace krigtune::surrogate {

// Alternating ascent in a mixed space (as in Optuna's GPSampler and BoTorch's optimize_acqf_mixed_alternating):
// gradient ascent on the continuous columns, then a move to the best point that differs in one other column. If no
// single column helps and some points are not allowed, it tries points that differ in two columns, because what is
// allowed may tie columns to each other.

namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kNothing = -std::numeric_limits<double>::infinity();
// A smaller gain does not justify another round: scores are logarithms, or of the size of the values.
constexpr double kStepTolerance = 1e-8;
// Columns with at most this many values are tried at every value.
constexpr Index kFewValues = 16;
constexpr std::size_t kMostPairs = 512;
// From this many neighbours of the best point, the continuous columns are climbed again.
constexpr std::size_t kPolished = 8;
// Size of random steps. Success increases it and failure decreases it, until it is too small to matter.
constexpr double kFirstStep = 0.1;
constexpr double kLastStep = 1e-5;
constexpr double kWiden = 1.5;
constexpr double kNarrow = 0.6;

bool is_gain(double after, double before) {
  if (!std::isfinite(before)) return after > before;
  return after - before > kStepTolerance * (1.0 + std::abs(before));
}

}  // namespace

LocalSearch::LocalSearch(const ScoreFunction& score, const MixedSpace& space, const MaximizeOptions& options, Rng& rng)
    : score_(score), space_(space), options_(options), rng_(rng) {
  for (std::size_t j = 0; j < space.ordered.size(); ++j)
    if (space.ordered[j].values.empty()) continuous_.push_back(static_cast<Index>(j));
}

VectorXd LocalSearch::scores(const Points& points) const {
  if (points.size() == 0) return {};
  return score_.values(points).unaryExpr([](double value) { return std::isnan(value) ? kNothing : value; });
}

Maximum LocalSearch::climb(Maximum start) {
  Maximum place = std::move(start);
  for (int round = 0; round < options_.rounds; ++round) {
    ascend(place);
    if (!move(place)) break;
  }
  return place;
}

Maximum LocalSearch::polish(Maximum best) {
  if (continuous_.empty()) return best;
  for (int round = 0; round < options_.rounds; ++round) {
    const Points near = finished(space_, moved(best.point, singly(near_moves_from(best.point))));
    const VectorXd values = scores(near);
    std::vector<Index> order(static_cast<std::size_t>(near.size()));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return values[a] > values[b]; });
    const double before = best.score;
    for (std::size_t i = 0; i < std::min(order.size(), kPolished); ++i) {
      Maximum place{near.slice(order[i], 1), values[order[i]]};
      ascend(place);
      if (place.score > best.score) best = std::move(place);
    }
    if (!is_gain(best.score, before)) break;
    best = climb(std::move(best));
  }
  return best;
}

/// Moves to the best of the proposed points if it is better, and returns whether that is a gain.
bool LocalSearch::take_best(const Points& proposed, Maximum& place) const {
  const Points points = finished(space_, proposed);
  const VectorXd values = scores(points);
  const Index best = best_candidate(values);
  if (best < 0 || !(values[best] > place.score)) return false;
  const bool gain = is_gain(values[best], place.score);
  place = {points.slice(best, 1), values[best]};
  return gain;
}

void LocalSearch::ascend(Maximum& place) {
  if (continuous_.empty()) return;
  if (space_.add_features || !ascend_by_gradient(place)) ascend_by_random_steps(place);
}

/// Returns false if the ascent must continue without gradients, because it could not start or ran into points that are
/// not allowed.
bool LocalSearch::ascend_by_gradient(Maximum& place) const {
  if (!std::isfinite(place.score)) return false;
  const auto count = static_cast<Index>(continuous_.size());
  bool all_allowed = true;
  Points point = place.point;
  const VectorXd start = point.ordered(0, continuous_).transpose();
  const DifferentiableFunction negative = [&](const VectorXd& x, VectorXd& gradient) {
    point.ordered(0, continuous_) = x.transpose();
    VectorXd by_column;
    const double value = score_.value_with_gradient(point, by_column);
    gradient = -by_column(continuous_);
    if (space_.allowed && !space_.allowed(point, 0)) {
      all_allowed = false;
    } else if (value > place.score) {
      place = {point, value};
    }
    return -value;
  };
  MinimizeLimits limits;
  limits.evaluations = options_.evaluations;
  minimize_in_box(negative, start, VectorXd::Zero(count), VectorXd::Ones(count), limits);
  return all_allowed;
}

void LocalSearch::ascend_by_random_steps(Maximum& place) {
  const auto dims = static_cast<Index>(continuous_.size());
  const Index batch = 8 + 4 * dims;
  double step = kFirstStep;
  for (Index spent = 0; step >= kLastStep && spent < Index{10} * options_.evaluations; spent += batch) {
    Points proposed = place.point.rows(std::vector<Index>(static_cast<std::size_t>(batch), 0));
    for (Index i = 0; i < batch; ++i) {
      // Every second proposal moves along a single axis, for narrow ridges along the axes and for faces of the cube.
      const Index only = i % 2 == 0 ? -1 : static_cast<Index>(rng_.below(static_cast<std::uint64_t>(dims)));
      for (Index k = 0; k < dims; ++k)
        if (only < 0 || only == k)
          proposed.ordered(i, continuous_[static_cast<std::size_t>(k)]) += step * rng_.normal();
    }
    const double before = place.score;
    take_best(snapped(space_, std::move(proposed)), place);
    step = place.score > before ? std::min(kWiden * step, kFirstStep) : kNarrow * step;
  }
}

std::vector<LocalSearch::Move> LocalSearch::moves_from(const Points& point) const {
  std::vector<Move> moves;
  for (Index j = 0; j < point.ordered.cols(); ++j) {
    const OrderedDimension& dimension = space_.ordered[static_cast<std::size_t>(j)];
    const auto count = static_cast<Index>(dimension.values.size());
    if (count == 0) continue;
    const Index here = position_of(dimension, point.ordered(0, j));
    const auto add = [&](Index to, bool near) {
      if (to >= 0 && to < count) moves.push_back({false, j, dimension.values[static_cast<std::size_t>(to)], near});
    };
    // Steps of 1, 2, 4, ... cross a column of thousands of values in a few rounds.
    for (Index step = 1; step < count; step = count <= kFewValues ? step + 1 : 2 * step) {
      add(here - step, step == 1);
      add(here + step, step == 1);
    }
  }
  for (Index j = 0; j < point.categories.cols(); ++j)
    for (int index = 0; index < space_.categories[static_cast<std::size_t>(j)]; ++index)
      if (index != point.categories(0, j)) moves.push_back({true, j, static_cast<double>(index), true});
  return moves;
}

std::vector<std::vector<LocalSearch::Move>> LocalSearch::singly(const std::vector<Move>& moves) {
  std::vector<std::vector<Move>> each;
  for (const Move& one : moves) each.push_back({one});
  return each;
}

Points LocalSearch::moved(const Points& point, const std::vector<std::vector<Move>>& moves) const {
  Points points = point.rows(std::vector<Index>(moves.size(), 0));
  for (std::size_t i = 0; i < moves.size(); ++i) {
    for (const Move& one : moves[i]) {
      if (one.category)
        points.categories(static_cast<Index>(i), one.column) = static_cast<int>(one.value);
      else
        points.ordered(static_cast<Index>(i), one.column) = one.value;
    }
  }
  return points;
}

std::vector<LocalSearch::Move> LocalSearch::near_moves_from(const Points& point) const {
  std::vector<Move> moves = moves_from(point);
  std::erase_if(moves, [](const Move& one) { return !one.near; });
  return moves;
}

bool LocalSearch::move(Maximum& place) {
  if (take_best(moved(place.point, singly(moves_from(place.point))), place)) return true;
  if (!space_.allowed) return false;
  std::vector<Move> moves = near_moves_from(place.point);
  rng_.shuffle(moves);  // if there are too many pairs, use a random sample
  std::vector<std::vector<Move>> pairs;
  for (std::size_t i = 0; i < moves.size(); ++i)
    for (std::size_t k = 0; k < i && pairs.size() < kMostPairs; ++k)
      if (moves[i].category != moves[k].category || moves[i].column != moves[k].column)
        pairs.push_back({moves[i], moves[k]});
  return take_best(moved(place.point, pairs), place);
}

namespace {

using Eigen::Index;
using Eigen::VectorXd;

/// Starts differ by at least this much in one column, because starts on the same peak climb to the same top.
constexpr double kApart = 0.1;

bool is_near(const Points& points, Index i, Index j) {
  return ((points.ordered.row(i) - points.ordered.row(j)).array().abs() < kApart).all() &&
         points.categories.row(i) == points.categories.row(j);
}

/// Returns the rows of the best points that are not close to a better one.
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

}  // namespace krigtune::surrogate
