// Estimators of the indices that importance.cpp defines. For each parameter i they use rows: sets of configurations
// that differ only in x_i. Within a row the effect of x_i is g = f - mean_r, and with a weight w for each point of a
// row
//
//   T_i = sum w g^2 / V,    S_i = sum_v (sum_v w g)^2 / (sum_v w) / V       v: the values of x_i
//
// If all configurations are listed, the rows are a partition of them, and w = 1 / n is exact. Otherwise x is drawn from
// the population n times. For each of the first draws and each parameter i, the row through x is listed: all
// configurations that differ from it only in i. Given the other parameters, x_i is uniform on its row, so with
// w = 1 / (rows |r|) the sum T_i V is unbiased, with or without constraints. A continuous range, or a list of more than
// twelve values, is represented by nine evenly spaced values. The sampling variance of the means of g at each v is
// subtracted from S_i V.
//
// Both sums use the same points, so by Cauchy and Schwarz 0 <= S_i <= T_i is true for every sample, and sampling noise
// cannot reverse the order.
//
// The interaction of i and j is estimated on rectangles, four configurations (x_i or x_i', x_j or x_j') that agree in
// everything else, as the mean of (f - f(x_i') - f(x_j') + f(x_i', x_j'))^2 / 4 / V (Fruth, Roustant & Kuhnt 2014,
// Journal of Statistical Planning and Inference 147). If values are drawn independently, this is the share of all terms
// of f's decomposition that contain both i and j. If constraints leave no such rectangle, no interaction is reported.
#include "insight/sobol_indices.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.h"
#include "search/candidates/candidate_list.h"
#include "space/well_known.h"

namespace krigtune::insight {
namespace {

constexpr std::size_t kMostLevels = 12;  // for a list; a longer one is treated as a continuous range
constexpr int kRealLevels = 9;           // for a continuous range
constexpr int kBatches = 10;             // to estimate the error from drawing
constexpr int kMostRectangles = 2000;    // for a pair, if configurations are listed

bool has_many_values(const space::Parameter& parameter) {
  return parameter.continuous() || parameter.values.size() > kMostLevels;
}

// Returns the level of a parameter in a configuration. `coarse`: many values are grouped into ninths of their range.
std::string level_of(const space::Parameter& parameter, const space::Configuration& configuration, bool coarse) {
  const space::Value* value = configuration.find(parameter.name);
  if (value == nullptr) return "";
  if (!parameter.continuous()) {
    if (!coarse || !has_many_values(parameter)) return space::to_string(*value);
    const auto index = static_cast<std::size_t>(std::max(parameter.index_of(*value), 0));
    return std::to_string(index * kRealLevels / parameter.values.size());
  }
  int level = 0;
  while (level + 1 < kRealLevels &&
         space::as_number(*value) >
             search::between(parameter, parameter.range->min, parameter.range->max, (level + 1.0) / kRealLevels)) {
    ++level;
  }
  return std::to_string(level);
}

using Names = std::vector<std::string>;

// Returns all parameters except some.
std::string rest(const Names& names, const Names& but, const space::Configuration& configuration) {
  std::string key;
  for (const std::string& name : names) {
    if (is_one_of(name, but)) continue;
    const space::Value* value = configuration.find(name);
    key += value == nullptr ? "\x1e" : space::to_string(*value) + "\x1f";
  }
  return key;
}

bool same_but(const Names& names, const Names& but, const space::Configuration& a, const space::Configuration& b) {
  return rest(names, but, a) == rest(names, but, b);
}

double mean_of(const PointSet& set, const Eigen::VectorXd& values) {
  double sum = 0.0;
  for (const int point : set) sum += values(point);
  return sum / static_cast<double>(set.size());
}

double variance_of(const PointSet& set, const Eigen::VectorXd& values) {
  const double mean = mean_of(set, values);
  double sum = 0.0;
  for (const int point : set) sum += (values(point) - mean) * (values(point) - mean);
  return sum / static_cast<double>(set.size());
}

// Sums over the points with one value of a parameter, with w and g as above.
struct LevelSums {
  double weight = 0.0, weight_squared = 0.0;
  double effect = 0.0;          // w g
  double effect_squared = 0.0;  // w^2 g^2
  double cross = 0.0;           // w^2 g
  int points = 0;

  void add(double w, double g) {
    weight += w;
    weight_squared += w * w;
    effect += w * g;
    effect_squared += w * w * g * g;
    cross += w * w * g;
    ++points;
  }
  double explained() const { return effect * effect / weight; }
  // The variance of the mean of g at this value, times the weight: what `explained` contains by chance if rows are
  // drawn.
  double by_chance() const {
    if (points < 2) return 0.0;
    const double mean = effect / weight;
    const double squares = effect_squared - 2.0 * mean * cross + mean * mean * weight_squared;
    return squares / weight * points / (points - 1.0);
  }
};

struct Shares {
  double first_order = 0.0, total = 0.0;
};

// Uses every `batches`-th row from `batch` on. The shares are not yet divided by the variance.
Shares shares_of(const SobolAxis& axis, bool sampled, double population, const Eigen::VectorXd& values, int batch,
                 int batches) {
  std::vector<LevelSums> levels(static_cast<std::size_t>(axis.level_count));
  Shares shares;
  double rows = 0.0;
  for (std::size_t r = 0; r < axis.rows.size(); ++r) rows += static_cast<int>(r) % batches == batch ? 1.0 : 0.0;
  for (std::size_t r = 0; r < axis.rows.size(); ++r) {
    if (static_cast<int>(r) % batches != batch) continue;
    const PointSet& row = axis.rows[r];
    const double mean = mean_of(row, values);
    const double weight = 1.0 / (sampled ? rows * static_cast<double>(row.size()) : population);
    for (std::size_t k = 0; k < row.size(); ++k) {
      const double effect = values(row[k]) - mean;
      shares.total += weight * effect * effect;
      levels[static_cast<std::size_t>(axis.levels[r][k])].add(weight, effect);
    }
  }
  for (const LevelSums& level : levels) {
    if (level.points == 0) continue;
    shares.first_order += level.explained() - (sampled ? level.by_chance() : 0.0);
  }
  shares.first_order = std::clamp(shares.first_order, 0.0, shares.total);
  return shares;
}

// Uses every kBatches-th draw, or all draws as batch 0 of 1.
SobolIndices indices_of(const SobolDesign& design, const Eigen::VectorXd& values, int batch, int batches) {
  PointSet population;
  for (int i = batch; i < design.population; i += batches) population.push_back(i);
  SobolIndices indices;
  indices.variance = variance_of(population, values);
  const auto axes = static_cast<Eigen::Index>(design.axes.size());
  indices.first_order = indices.total = Eigen::VectorXd::Zero(axes);
  if (!(indices.variance > 0.0)) return indices;
  for (Eigen::Index i = 0; i < axes; ++i) {
    const Shares shares = shares_of(design.axes[static_cast<std::size_t>(i)], design.sampled,
                                    static_cast<double>(population.size()), values, batch, batches);
    indices.first_order(i) = shares.first_order / indices.variance;
    indices.total(i) = shares.total / indices.variance;
  }
  return indices;
}

}  // namespace

std::vector<std::string> free_parameters(const space::Space& space) {
  std::vector<std::string> names;
  for (const space::Parameter& parameter : space.parameters()) {
    if (parameter.name == space::kAccumulation && space.facts().accumulation_follows()) continue;
    if (parameter.continuous() || parameter.values.size() > 1) names.push_back(parameter.name);
  }
  return names;
}

std::vector<space::Value> levels_of(const space::Parameter& parameter) {
  if (!has_many_values(parameter)) return parameter.values;
  std::vector<space::Value> values;
  for (int level = 0; level < kRealLevels; ++level) {
    if (!parameter.continuous()) {  // the value in the middle of each ninth
      const auto twice = static_cast<std::size_t>(2 * level + 1) * parameter.values.size();
      values.push_back(parameter.values[twice / (std::size_t{2} * kRealLevels)]);
      continue;
    }
    values.emplace_back(
        search::between(parameter, parameter.range->min, parameter.range->max, (level + 0.5) / kRealLevels));
  }
  return values;
}

std::string SobolAxis::name() const { return join(names, " and "); }

std::optional<space::Configuration> with_values(const space::Space& space, const space::Configuration& configuration,
                                                const Names& names, const std::vector<space::Value>& values) {
  space::Configuration moved = configuration;
  for (std::size_t i = 0; i < names.size(); ++i) moved.set(names[i], values[i]);
  if (space.facts().accumulation_follows()) moved.erase(space::kAccumulation);
  if (space.complete(moved) != space::Exclusion::kNone || !space.contains(moved)) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const space::Value* now = moved.find(names[i]);
    if (now == nullptr || !space::same_value(*now, values[i])) return std::nullopt;
  }
  if (!same_but(free_parameters(space), names, configuration, moved)) return std::nullopt;
  return moved;
}

namespace {

// Returns the combinations of the parameters' levels. Empty if several parameters have more than kMostCombinations.
std::vector<std::vector<space::Value>> combinations(const space::Space& space, const Names& names) {
  constexpr std::size_t kMostCombinations = 150;
  std::vector<std::vector<space::Value>> all = {{}};
  for (const std::string& name : names) {
    std::vector<std::vector<space::Value>> longer;
    for (const std::vector<space::Value>& combination : all) {
      for (const space::Value& value : levels_of(*space.find(name))) {
        longer.push_back(combination);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
    if (names.size() > 1 && all.size() > kMostCombinations) return {};
  }
  return all;
}

bool has_values(const space::Configuration& configuration, const Names& names,
                const std::vector<space::Value>& values) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const space::Value* own = configuration.find(names[i]);
    if (own == nullptr || !space::same_value(*own, values[i])) return false;
  }
  return true;
}

}  // namespace

std::vector<space::Configuration> neighbours(const space::Space& space, const space::Configuration& configuration,
                                             const Names& names) {
  std::vector<space::Configuration> others;
  for (const std::vector<space::Value>& values : combinations(space, names)) {
    if (has_values(configuration, names, values)) continue;
    std::optional<space::Configuration> moved = with_values(space, configuration, names, values);
    if (moved) others.push_back(std::move(*moved));
  }
  return others;
}

namespace {

// Builds the rows of an axis from the level of each point.
class AxisMaker {
 public:
  AxisMaker(const SobolDesign& design, const space::Space& space, const Names& names) : design_(design), space_(space) {
    axis_.names = names;
  }
  void add(PointSet row) {
    std::vector<int>& levels = axis_.levels.emplace_back();
    for (const int point : row) {
      std::string level;
      for (const std::string& name : axis_.names) {
        level +=
            level_of(*space_.find(name), design_.points[static_cast<std::size_t>(point)], design_.sampled) + '\x1f';
      }
      levels.push_back(numbers_.emplace(level, static_cast<int>(numbers_.size())).first->second);
    }
    axis_.rows.push_back(std::move(row));
  }
  SobolAxis take() {
    axis_.level_count = static_cast<int>(numbers_.size());
    return std::move(axis_);
  }

 private:
  const SobolDesign& design_;
  const space::Space& space_;
  std::map<std::string, int> numbers_;
  SobolAxis axis_;
};

// Returns whether any configuration has a neighbour on this axis.
bool varies(const SobolAxis& axis) {
  return std::any_of(axis.rows.begin(), axis.rows.end(), [](const PointSet& row) { return row.size() > 1; });
}

using MakeAxis = std::function<SobolAxis(const Names&)>;

// Groups names of which two can only change together.
std::vector<Names> grouped(const Names& names, const MakeAxis& make_axis) {
  std::vector<Names> groups;
  for (const std::string& name : names) {
    Names own = {name};
    const auto changes_with = [&](const Names& group) {
      return std::any_of(group.begin(), group.end(), [&](const std::string& other) {
        return varies(make_axis({other, name}));
      });
    };
    std::vector<Names> apart;
    for (const Names& group : groups) {
      if (changes_with(group)) {
        own.insert(own.begin(), group.begin(), group.end());
      } else {
        apart.push_back(group);
      }
    }
    apart.push_back(std::move(own));
    groups = std::move(apart);
  }
  return groups;
}

// Makes one axis for each parameter, and a common one for parameters that only change together.
std::vector<SobolAxis> axes_of(const Names& names, const MakeAxis& make_axis) {
  std::vector<SobolAxis> axes;
  Names tied;
  for (const std::string& name : names) {
    SobolAxis axis = make_axis({name});
    if (varies(axis)) {
      axes.push_back(std::move(axis));
    } else {
      tied.push_back(name);
    }
  }
  for (const Names& group : grouped(tied, make_axis)) axes.push_back(make_axis(group));
  return axes;
}

}  // namespace

SobolDesign listed_design(const space::Space& space, std::vector<space::Configuration> configurations) {
  SobolDesign design;
  design.points = std::move(configurations);
  design.population = static_cast<int>(design.points.size());
  const Names names = free_parameters(space);
  design.axes = axes_of(names, [&](const Names& group) {
    std::map<std::string, PointSet> rows;
    for (int i = 0; i < design.population; ++i) {
      rows[rest(names, group, design.points[static_cast<std::size_t>(i)])].push_back(i);
    }
    AxisMaker axis(design, space, group);
    for (auto& [key, row] : rows) axis.add(std::move(row));
    return axis.take();
  });
  return design;
}

SobolDesign sampled_design(const space::Space& space, const std::function<space::Configuration()>& draw,
                           const space::Space::Predicate& contains, const SampleSize& size) {
  SobolDesign design;
  design.sampled = true;
  design.population = size.population;
  for (int i = 0; i < size.population; ++i) design.points.push_back(draw());
  design.axes = axes_of(free_parameters(space), [&](const Names& group) {
    const std::vector<std::vector<space::Value>> levels = combinations(space, group);
    AxisMaker axis(design, space, group);
    for (int i = 0; i < size.rows; ++i) {
      const space::Configuration drawn = design.points[static_cast<std::size_t>(i)];
      PointSet row;
      const bool is_level = std::any_of(levels.begin(), levels.end(),
                                        [&](const auto& values) { return has_values(drawn, group, values); });
      if (is_level) row.push_back(i);
      for (space::Configuration& moved : neighbours(space, drawn, group)) {
        if (!contains(moved)) continue;
        row.push_back(static_cast<int>(design.points.size()));
        design.points.push_back(std::move(moved));
      }
      if (row.empty()) row.push_back(i);
      axis.add(std::move(row));
    }
    return axis.take();
  });
  return design;
}

namespace {

// The place of each point on an axis: its row and its index in it.
struct RowPlace {
  int row = -1;
  int place = 0;
};

std::vector<RowPlace> places_on(const SobolDesign& design, const SobolAxis& axis) {
  std::vector<RowPlace> places(design.points.size());
  for (std::size_t r = 0; r < axis.rows.size(); ++r) {
    for (std::size_t k = 0; k < axis.rows[r].size(); ++k) {
      places[static_cast<std::size_t>(axis.rows[r][k])] = {static_cast<int>(r), static_cast<int>(k)};
    }
  }
  return places;
}

int one_of(const PointSet& set, Rng& rng) { return set[rng.below(set.size())]; }

// For listed configurations: the fourth corner is the point of the row of i through x_j' that has the level of x_i'.
std::vector<Rectangle> listed_rectangles(const SobolDesign& design, const SobolAxis& a, const SobolAxis& b, Rng& rng) {
  const std::vector<RowPlace> on_a = places_on(design, a);
  const std::vector<RowPlace> on_b = places_on(design, b);
  std::vector<Rectangle> rectangles;
  for (int i = 0; i < kMostRectangles; ++i) {
    const auto corner = static_cast<int>(rng.below(static_cast<std::uint64_t>(design.population)));
    const RowPlace at_a = on_a[static_cast<std::size_t>(corner)];
    const RowPlace at_b = on_b[static_cast<std::size_t>(corner)];
    const PointSet& row_a = a.rows[static_cast<std::size_t>(at_a.row)];
    const std::size_t k = rng.below(row_a.size());
    const int other_b = one_of(b.rows[static_cast<std::size_t>(at_b.row)], rng);
    const int level = a.levels[static_cast<std::size_t>(at_a.row)][k];
    const auto row_of_other = static_cast<std::size_t>(on_a[static_cast<std::size_t>(other_b)].row);
    const std::vector<int>& levels = a.levels[row_of_other];
    const auto found = std::find(levels.begin(), levels.end(), level);
    if (found == levels.end()) continue;
    rectangles.push_back(
        {corner, row_a[k], other_b, a.rows[row_of_other][static_cast<std::size_t>(found - levels.begin())]});
  }
  return rectangles;
}

// For drawn configurations: x_i' and x_j' are on the rows through the same draw, and the fourth corner is a new point.
std::vector<Rectangle> sampled_rectangles(const space::Space& space, const space::Space::Predicate& contains,
                                          SobolDesign& design, std::size_t axis_a, std::size_t axis_b, Rng& rng) {
  std::vector<Rectangle> rectangles;
  const Names names = design.axes[axis_b].names;
  for (std::size_t r = 0; r < design.axes[axis_a].rows.size(); ++r) {
    const int a = one_of(design.axes[axis_a].rows[r], rng);
    const int b = one_of(design.axes[axis_b].rows[r], rng);
    const space::Value* value = design.points[static_cast<std::size_t>(b)].find(names.front());
    if (value == nullptr) continue;
    std::optional<space::Configuration> both =
        with_values(space, design.points[static_cast<std::size_t>(a)], names, {*value});
    if (!both || !contains(*both)) continue;
    rectangles.push_back({static_cast<int>(r), a, b, static_cast<int>(design.points.size())});
    design.points.push_back(std::move(*both));
  }
  return rectangles;
}

}  // namespace

void add_pairs(const space::Space& space, const space::Space::Predicate& contains,
               const std::vector<std::string>& names, SobolDesign& design, Rng& rng) {
  constexpr std::size_t kFewestRectangles = 20;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < design.axes.size(); ++i) {
    const SobolAxis& axis = design.axes[i];
    if (axis.names.size() == 1 && varies(axis) && is_one_of(axis.name(), names)) chosen.push_back(i);
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (std::size_t j = i + 1; j < chosen.size(); ++j) {
      SobolPair pair{chosen[i], chosen[j], {}};
      pair.rectangles = design.sampled ? sampled_rectangles(space, contains, design, chosen[i], chosen[j], rng)
                                       : listed_rectangles(design, design.axes[chosen[i]], design.axes[chosen[j]], rng);
      if (pair.rectangles.size() >= kFewestRectangles) design.pairs.push_back(std::move(pair));
    }
  }
}

SobolIndices sobol_indices(const SobolDesign& design, const Eigen::VectorXd& values) {
  SobolIndices indices = indices_of(design, values, 0, 1);
  indices.pairs = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(design.pairs.size()));
  if (!(indices.variance > 0.0)) return indices;
  for (std::size_t i = 0; i < design.pairs.size(); ++i) {
    double sum = 0.0;
    for (const Rectangle& r : design.pairs[i].rectangles) {
      const double interaction = values(r.corner) - values(r.other_a) - values(r.other_b) + values(r.both);
      sum += 0.25 * interaction * interaction;
    }
    const double mean = sum / static_cast<double>(design.pairs[i].rectangles.size());
    indices.pairs(static_cast<Eigen::Index>(i)) = mean / indices.variance;
  }
  return indices;
}

double sampling_error(const SobolDesign& design, const Eigen::VectorXd& values) {
  if (!design.sampled) return 0.0;
  const auto axes = static_cast<Eigen::Index>(design.axes.size());
  Eigen::MatrixXd each(2 * axes, kBatches);
  for (int batch = 0; batch < kBatches; ++batch) {
    const SobolIndices indices = indices_of(design, values, batch, kBatches);
    each.col(batch) << indices.first_order, indices.total;
  }
  const Eigen::ArrayXXd deviations = (each.colwise() - each.rowwise().mean()).array();
  return (deviations.square().rowwise().sum() / (kBatches - 1.0) / kBatches).sqrt().maxCoeff();
}

}  // namespace krigtune::insight
