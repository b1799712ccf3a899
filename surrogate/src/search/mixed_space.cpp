#include "search/mixed_space.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "quasi_random.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;

// If less than a 64th of the space is allowed, sample() may return fewer points than requested.
constexpr Index kTries = 64;

Index size_of(const auto& container) { return static_cast<Index>(container.size()); }

/// Returns the index at fraction `part` of `count` indices, 0 <= part < 1.
Index index_at(double part, Index count) {
  return std::min(static_cast<Index>(part * static_cast<double>(count)), count - 1);
}

double value_at(const OrderedDimension& dimension, double part) {
  if (dimension.values.empty()) return part;
  return dimension.values[static_cast<std::size_t>(index_at(part, size_of(dimension.values)))];
}

Points decoded(const MixedSpace& space, const Eigen::MatrixXd& unit) {
  Points points = Points::zero(unit.rows(), size_of(space.ordered), size_of(space.categories));
  for (Index i = 0; i < unit.rows(); ++i) {
    Index column = 0;
    for (Index j = 0; j < points.ordered.cols(); ++j)
      points.ordered(i, j) = value_at(space.ordered[static_cast<std::size_t>(j)], unit(i, column++));
    for (Index j = 0; j < points.categories.cols(); ++j)
      points.categories(i, j) =
          static_cast<int>(index_at(unit(i, column++), space.categories[static_cast<std::size_t>(j)]));
  }
  return points;
}

void check(const OrderedDimension& dimension, std::size_t column) {
  const std::string name = "ordered column " + std::to_string(column);
  for (std::size_t i = 0; i < dimension.values.size(); ++i) {
    if (!(dimension.values[i] >= 0.0 && dimension.values[i] <= 1.0))
      throw UserError(name + ": its values must lie in [0, 1]");
    if (i > 0 && !(dimension.values[i] > dimension.values[i - 1])) throw UserError(name + ": its values must increase");
  }
}

}  // namespace

void MixedSpace::validate() const {
  if (ordered.empty() && categories.empty()) throw UserError("the space has no columns: there must be one at least");
  for (std::size_t j = 0; j < ordered.size(); ++j) check(ordered[j], j);
  for (std::size_t j = 0; j < categories.size(); ++j)
    if (categories[j] < 1)
      throw UserError("category column " + std::to_string(j) + ": there must be one category at least");
}

Points MixedSpace::sample(Index count, Rng& rng) const {
  HaltonSequence sequence(size_of(ordered) + size_of(categories), rng);
  Points found = Points::zero(0, size_of(ordered), size_of(categories));
  for (Index round = 0; round < kTries && found.size() < count; ++round) {
    const Points more = finished(*this, decoded(*this, sequence.next(count)));
    if (more.size() > 0) found.append(more.slice(0, std::min(more.size(), count - found.size())));
  }
  return found;
}

Points finished(const MixedSpace& space, const Points& points) {
  std::vector<Index> rows;
  for (Index i = 0; i < points.size(); ++i)
    if (!space.allowed || space.allowed(points, i)) rows.push_back(i);
  Points kept = points.rows(rows);
  if (space.add_features && kept.size() > 0) space.add_features(kept);
  return kept;
}

Index position_of(const OrderedDimension& dimension, double value) {
  const auto& values = dimension.values;
  const auto above = std::lower_bound(values.begin(), values.end(), value);
  if (above == values.end()) return size_of(values) - 1;
  const Index position = above - values.begin();
  return position > 0 && value - *(above - 1) < *above - value ? position - 1 : position;
}

Points snapped(const MixedSpace& space, Points points) {
  points.features.resize(points.size(), 0);
  points.ordered = points.ordered.cwiseMax(0.0).cwiseMin(1.0);
  for (Index j = 0; j < points.ordered.cols(); ++j) {
    const OrderedDimension& dimension = space.ordered[static_cast<std::size_t>(j)];
    if (dimension.values.empty()) continue;
    for (double& value : points.ordered.col(j))
      value = dimension.values[static_cast<std::size_t>(position_of(dimension, value))];
  }
  for (Index j = 0; j < points.categories.cols(); ++j)
    points.categories.col(j) =
        points.categories.col(j).cwiseMax(0).cwiseMin(space.categories[static_cast<std::size_t>(j)] - 1);
  return points;
}

std::optional<Points> enumerated(const MixedSpace& space, Index limit) {
  Index count = 1;
  for (const OrderedDimension& dimension : space.ordered) {
    if (dimension.values.empty() || size_of(dimension.values) > limit / count) return std::nullopt;
    count *= size_of(dimension.values);
  }
  for (const int categories : space.categories) {
    if (categories > limit / count) return std::nullopt;
    count *= categories;
  }
  Points all = Points::zero(count, size_of(space.ordered), size_of(space.categories));
  for (Index i = 0; i < count; ++i) {
    Index left = i;
    for (Index j = 0; j < all.ordered.cols(); ++j) {
      const auto& values = space.ordered[static_cast<std::size_t>(j)].values;
      all.ordered(i, j) = values[static_cast<std::size_t>(left % size_of(values))];
      left /= size_of(values);
    }
    for (Index j = 0; j < all.categories.cols(); ++j) {
      const int categories = space.categories[static_cast<std::size_t>(j)];
      all.categories(i, j) = static_cast<int>(left % categories);
      left /= categories;
    }
  }
  return all;
}

Points scattered_around(const MixedSpace& space, const Points& centre, Index count, Rng& rng) {
  // Near the incumbent the region of improvement becomes narrower as the model becomes more certain, so the scales
  // range from a fifth of the cube down to a thousandth.
  constexpr double kWidest = 0.2;
  constexpr double kDecades = 2.3;
  constexpr double kOtherCategory = 0.1;
  Points points = centre.rows(std::vector<Index>(static_cast<std::size_t>(count), 0));
  for (Index i = 0; i < count; ++i) {
    const double scale = kWidest * std::pow(10.0, -kDecades * rng.uniform());
    for (Index j = 0; j < points.ordered.cols(); ++j) points.ordered(i, j) += scale * rng.normal();
    for (Index j = 0; j < points.categories.cols(); ++j) {
      const int categories = space.categories[static_cast<std::size_t>(j)];
      if (rng.uniform() < kOtherCategory)
        points.categories(i, j) = static_cast<int>(rng.below(static_cast<std::uint64_t>(categories)));
    }
  }
  return snapped(space, points);
}

}  // namespace krigtune::surrogate
