#include "search/history.h"

#include <algorithm>
#include <utility>

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

// In every column of the unit cube, this is below the step of any grid and above the rounding of a point that is
// written and read again.
constexpr double kSame = 1e-9;

bool is_same(const Points& x, Index i, const Points& y, Index j) {
  for (Index k = 0; k < x.ordered.cols(); ++k)
    if (!(std::abs(x.ordered(i, k) - y.ordered(j, k)) <= kSame)) return false;
  for (Index k = 0; k < x.categories.cols(); ++k)
    if (x.categories(i, k) != y.categories(j, k)) return false;
  return true;
}

void add(Observations& observations, const Points& point, double value) {
  observations.append({point, VectorXd::Constant(1, value), {}});
}

}  // namespace

bool is_feasible(const Evaluation& evaluation) {
  return evaluation.value && (evaluation.constraints.size() == 0 || evaluation.constraints.maxCoeff() <= 0.0);
}

bool History::contains(const Points& points, Index row) const {
  for (const Evaluation& evaluation : told)
    if (is_same(evaluation.point, 0, points, row)) return true;
  for (Index i = 0; i < pending.size(); ++i)
    if (is_same(pending, i, points, row)) return true;
  return false;
}

void History::tell(const Evaluation& evaluation) {
  Points left = pending.slice(0, 0);
  for (Index i = 0; i < pending.size(); ++i)
    if (!is_same(pending, i, evaluation.point, 0)) left.append(pending.slice(i, 1));
  pending = std::move(left);
  told.push_back(evaluation);
}

bool History::has_failures() const {
  return std::any_of(told.begin(), told.end(), [](const Evaluation& evaluation) { return !evaluation.value; });
}

std::optional<double> History::worst() const {
  std::optional<double> worst;
  for (const Evaluation& evaluation : told)
    if (evaluation.value && !(worst && *worst <= *evaluation.value)) worst = evaluation.value;
  return worst;
}

std::optional<Evaluation> History::best() const {
  std::optional<Evaluation> best;
  for (const Evaluation& evaluation : told)
    if (is_feasible(evaluation) && !(best && *best->value >= *evaluation.value)) best = evaluation;
  return best;
}

Points History::best_points(std::size_t count) const {
  std::vector<const Evaluation*> feasible;
  for (const Evaluation& evaluation : told)
    if (is_feasible(evaluation)) feasible.push_back(&evaluation);
  std::stable_sort(feasible.begin(), feasible.end(),
                   [](const Evaluation* x, const Evaluation* y) { return *x->value > *y->value; });
  Points points = pending.slice(0, 0);
  for (std::size_t i = 0; i < std::min(count, feasible.size()); ++i) points.append(feasible[i]->point);
  return points;
}

Points History::feasible_points() const { return best_points(told.size()); }

Observations History::values(std::optional<double> of_failures) const {
  Observations observations;
  for (const Evaluation& evaluation : told) {
    const std::optional<double> value = evaluation.value ? evaluation.value : of_failures;
    if (value) add(observations, evaluation.point, *value);
  }
  return observations;
}

Index History::constraints() const {
  Index count = 0;
  for (const Evaluation& evaluation : told) count = std::max(count, evaluation.constraints.size());
  return count;
}

Observations History::constraint(Index index) const {
  Observations observations;
  for (const Evaluation& evaluation : told)
    if (evaluation.constraints.size() > 0) add(observations, evaluation.point, evaluation.constraints[index]);
  return observations;
}

}  // namespace krigtune::surrogate
