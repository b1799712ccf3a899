// A climb from the best members of a pool. Samples and points near the best trials seldom come close to the maximum of
// a score over several continuous axes: on a front, the next member may be far away along one axis while all others
// stay as they are, and a trial that improves only one of them is a trial wasted on each.
//
// All starts climb together, so that a model is asked for one batch a round. In a round each start is moved
//
//   along every continuous axis to one place anywhere on it, and by the present step to either side,
//   towards samples of the whole space by the present step (all axes at once),
//   and to its neighbours (Space::neighbours), which also change categories and lists.
//
// It takes the best if that is better and lengthens its step, and otherwise shortens the step (the success rule of
// Schumer & Steiglitz 1968, "Adaptive step size random search").
#include "search/candidates/climb.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace krigtune::search {
namespace {

constexpr std::size_t kClimbStarts = 6;
constexpr int kClimbRounds = 12;
constexpr double kFirstStep = 0.1;  // of an axis
constexpr double kLongestStep = 0.3;
constexpr double kLengthen = 1.5;
constexpr double kShorten = 0.4;
constexpr int kMixedMoves = 6;        // of all axes at once
constexpr double kApart = 0.1 * 0.1;  // squared distance of starts, in axes

struct Start {
  space::Configuration configuration;
  double score = 0.0;
  double step = kFirstStep;
  bool has_moved = false;
};

// Returns the best rows whose score is above 0 and that are not close to a better one, because climbs from the same
// slope end on the same top.
std::vector<Start> starts_of(const CandidateList& pool, const Eigen::VectorXd& scores) {
  std::vector<Eigen::Index> order(pool.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Eigen::Index>(i);
  std::stable_sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) { return scores(a) > scores(b); });
  std::vector<Start> starts;
  std::vector<Eigen::Index> rows;
  for (const Eigen::Index row : order) {
    if (starts.size() == kClimbStarts || !(scores(row) > 0.0)) break;
    const bool is_apart = std::all_of(rows.begin(), rows.end(), [&](Eigen::Index other) {
      return (pool.points.categories.row(row).array() != pool.points.categories.row(other).array()).any() ||
             (pool.points.ordered.row(row) - pool.points.ordered.row(other)).squaredNorm() >= kApart;
    });
    if (!is_apart) continue;
    rows.push_back(row);
    starts.push_back({pool.configurations[static_cast<std::size_t>(row)], scores(row)});
  }
  return starts;
}

void add_moves(const Candidates& candidates, const Start& start, Rng& rng, ListBuilder& moves) {
  const space::Space& space = candidates.space();
  for (const space::Parameter& parameter : space.parameters()) {
    const space::Value* value = start.configuration.find(parameter.name);
    if (!parameter.continuous() || value == nullptr) continue;
    const double here = axis_position(parameter, space::as_number(*value));
    for (const double place : {rng.uniform(), here - start.step, here + start.step}) {
      const auto moved = moved_along(space, start.configuration, parameter, std::clamp(place, 0.0, 1.0));
      if (moved) moves.add(*moved);
    }
  }
  for (int i = 0; i < kMixedMoves && !space.listable(); ++i) {
    if (const auto moved = moved_towards_sample(space, start.configuration, start.step, rng)) moves.add(*moved);
  }
  if (start.step < kFirstStep) return;  // it has tried them
  for (const space::Configuration& neighbour : space.neighbours(start.configuration)) moves.add(neighbour);
}

// Moves a start to the best of its proposals, the rows [first, last) of the list.
void take_best(const CandidateList& list, const Eigen::VectorXd& scores, std::size_t first, std::size_t last,
               Start& start) {
  std::size_t best = last;
  double highest = start.score;
  for (std::size_t i = first; i < last; ++i) {
    if (!(scores(static_cast<Eigen::Index>(i)) > highest)) continue;
    highest = scores(static_cast<Eigen::Index>(i));
    best = i;
  }
  if (best == last) {
    start.step *= kShorten;
    return;
  }
  start = {list.configurations[best], highest, std::min(start.step * kLengthen, kLongestStep), true};
}

}  // namespace

CandidateList climb(const Candidates& candidates, const CandidateList& pool, const Eigen::VectorXd& scores,
                    const ListScore& score, Rng& rng) {
  std::vector<Start> starts = starts_of(pool, scores);
  for (int round = 0; round < kClimbRounds; ++round) {
    ListBuilder moves(candidates);
    std::vector<std::size_t> ends;
    for (const Start& start : starts) {
      add_moves(candidates, start, rng, moves);
      ends.push_back(moves.size());
    }
    const CandidateList list = moves.finish();
    if (list.size() == 0) break;
    const Eigen::VectorXd values = score(list);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      take_best(list, values, i == 0 ? 0 : ends[i - 1], ends[i], starts[i]);
    }
  }
  ListBuilder tops(candidates);
  for (const Start& start : starts) {
    if (start.has_moved && !pool.find(candidates.key(start.configuration))) tops.add(start.configuration);
  }
  return tops.finish();
}

void append(CandidateList& list, const CandidateList& more) {
  for (const auto& [key, position] : more.index) list.index.emplace(key, list.size() + position);
  list.configurations.insert(list.configurations.end(), more.configurations.begin(), more.configurations.end());
  list.memory.insert(list.memory.end(), more.memory.begin(), more.memory.end());
  list.points.append(more.points);
}

}  // namespace krigtune::search
