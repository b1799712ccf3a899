// Estimators of the indices that importance.cpp defines. Exact where all configurations are listed: the population is
// them all, rows are a partition of it.
//
//   S_i = sum_v n_v (mean_v - mean)^2 / n / V,    T_i = sum_rows sum_row (f - mean_row)^2 / n / V
//
// Otherwise x is drawn from the population n times. For each of the first draws and each parameter i the row through x,
// all configurations that differ from it in i alone, is listed: given the others, x_i is uniform on its row, so the
// mean over x of the row's variance is T_i V without bias, constraints or not. Of a real range, and of a list of more
// than twelve, nine values evenly spaced stand for the row. S_i V is the variance between levels
// less what k levels of n draws show by chance, (k - 1) / n times the variance within (analysis of variance, one random
// factor; Searle, Casella & McCulloch 1992, section 3.6).
#include "insight/sobol_indices.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "search/candidates/candidate_list.h"
#include "space/well_known.h"

namespace krigtune::insight {
namespace {

constexpr std::size_t kMostLevels = 12;  // of a list; of a longer one as of a real range
constexpr int kRealLevels = 9;           // of a real range
constexpr int kBatches = 10;             // of the error from drawing

bool has_many_values(const space::Parameter& parameter) {
  return parameter.continuous() || parameter.values.size() > kMostLevels;
}

// The level of a parameter in a configuration; `coarse`: many values by ninths of their range.
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

std::vector<PointSet> sets_of(std::map<std::string, PointSet>&& by_key) {
  std::vector<PointSet> sets;
  for (auto& [key, set] : by_key) sets.push_back(std::move(set));
  return sets;
}

std::vector<PointSet> levels(const SobolDesign& design, const space::Parameter& parameter) {
  std::map<std::string, PointSet> by_level;
  for (int i = 0; i < design.population; ++i) {
    by_level[level_of(parameter, design.points[static_cast<std::size_t>(i)], design.sampled)].push_back(i);
  }
  return sets_of(std::move(by_level));
}

// All but one parameter.
std::string rest(const std::vector<std::string>& names, const std::string& but,
                 const space::Configuration& configuration) {
  std::string key;
  for (const std::string& name : names) {
    if (name == but) continue;
    const space::Value* value = configuration.find(name);
    key += value == nullptr ? "\x1e" : space::to_string(*value) + "\x1f";
  }
  return key;
}

bool same_but(const std::vector<std::string>& names, const std::string& but, const space::Configuration& a,
              const space::Configuration& b) {
  return rest(names, but, a) == rest(names, but, b);
}

double mean_of(const PointSet& set, const Eigen::VectorXd& values) {
  double sum = 0.0;
  for (const int point : set) sum += values(point);
  return sum / static_cast<double>(set.size());
}

double squares_of(const PointSet& set, const Eigen::VectorXd& values) {
  const double mean = mean_of(set, values);
  double sum = 0.0;
  for (const int point : set) sum += (values(point) - mean) * (values(point) - mean);
  return sum;
}

// Every kBatches-th draw, as a design of its own. Points stay where they are.
struct Part {
  PointSet population;
  std::vector<SobolAxis> axes;
};

Part part_of(const SobolDesign& design, int batch, int batches) {
  const auto in_batch = [&](int i) { return i % batches == batch; };
  Part part;
  for (int i = 0; i < design.population; ++i) {
    if (in_batch(i)) part.population.push_back(i);
  }
  for (const SobolAxis& axis : design.axes) {
    SobolAxis cut{axis.name, {}, {}};
    for (const PointSet& level : axis.levels) {
      PointSet kept;
      std::copy_if(level.begin(), level.end(), std::back_inserter(kept), in_batch);
      if (!kept.empty()) cut.levels.push_back(std::move(kept));
    }
    for (std::size_t row = 0; row < axis.rows.size(); ++row) {
      if (in_batch(static_cast<int>(row))) cut.rows.push_back(axis.rows[row]);
    }
    part.axes.push_back(std::move(cut));
  }
  return part;
}

SobolIndices indices_of(const PointSet& population, const std::vector<SobolAxis>& axes, bool sampled,
                        const Eigen::VectorXd& values) {
  SobolIndices indices;
  const auto count = static_cast<double>(population.size());
  const double mean = mean_of(population, values);
  indices.variance = squares_of(population, values) / count;
  indices.first_order = indices.total = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(axes.size()));
  if (!(indices.variance > 0.0)) return indices;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    double between_levels = 0.0;
    double within = 0.0;
    for (const PointSet& level : axes[i].levels) {
      const double deviation = mean_of(level, values) - mean;
      between_levels += static_cast<double>(level.size()) * deviation * deviation / count;
      within += squares_of(level, values);
    }
    const auto level_count = static_cast<double>(axes[i].levels.size());
    if (sampled && count > level_count) {
      between_levels -= (level_count - 1.0) / count * within / (count - level_count);
    }
    double along_rows = 0.0;
    for (const PointSet& row : axes[i].rows) {
      const double squares = squares_of(row, values);
      along_rows += sampled ? squares / static_cast<double>(row.size() * axes[i].rows.size()) : squares / count;
    }
    const auto axis = static_cast<Eigen::Index>(i);
    indices.first_order(axis) = std::max(between_levels, 0.0) / indices.variance;
    indices.total(axis) = along_rows / indices.variance;
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
    if (!parameter.continuous()) {  // the middle one of each ninth
      const auto twice = static_cast<std::size_t>(2 * level + 1) * parameter.values.size();
      values.push_back(parameter.values[twice / (std::size_t{2} * kRealLevels)]);
      continue;
    }
    values.emplace_back(
        search::between(parameter, parameter.range->min, parameter.range->max, (level + 0.5) / kRealLevels));
  }
  return values;
}

std::optional<space::Configuration> with_value(const space::Space& space, const space::Configuration& configuration,
                                               const std::string& name, const space::Value& value) {
  space::Configuration moved = configuration;
  moved.set(name, value);
  if (space.facts().accumulation_follows()) moved.erase(space::kAccumulation);
  if (space.complete(moved) != space::Exclusion::kNone || !space.contains(moved)) return std::nullopt;
  const space::Value* now = moved.find(name);
  if (now == nullptr || !space::same_value(*now, value)) return std::nullopt;
  if (!same_but(free_parameters(space), name, configuration, moved)) return std::nullopt;
  return moved;
}

SobolDesign listed_design(const space::Space& space, std::vector<space::Configuration> configurations) {
  SobolDesign design;
  design.points = std::move(configurations);
  design.population = static_cast<int>(design.points.size());
  const std::vector<std::string> names = free_parameters(space);
  for (const std::string& name : names) {
    std::map<std::string, PointSet> rows;
    for (int i = 0; i < design.population; ++i) {
      rows[rest(names, name, design.points[static_cast<std::size_t>(i)])].push_back(i);
    }
    design.axes.push_back({name, levels(design, *space.find(name)), sets_of(std::move(rows))});
  }
  return design;
}

SobolDesign sampled_design(const space::Space& space, const std::function<space::Configuration()>& draw,
                           const space::Space::Predicate& contains, const SampleSize& size) {
  SobolDesign design;
  design.sampled = true;
  design.population = size.population;
  for (int i = 0; i < size.population; ++i) design.points.push_back(draw());
  for (const std::string& name : free_parameters(space)) {
    const space::Parameter& parameter = *space.find(name);
    SobolAxis axis{name, levels(design, parameter), {}};
    for (int i = 0; i < size.rows; ++i) {
      const space::Configuration drawn = design.points[static_cast<std::size_t>(i)];
      PointSet row;
      const bool lists_all = !has_many_values(parameter);
      if (lists_all) row.push_back(i);
      for (const space::Value& value : levels_of(parameter)) {
        const space::Value* own = drawn.find(name);
        if (lists_all && own != nullptr && space::same_value(*own, value)) continue;
        std::optional<space::Configuration> moved = with_value(space, drawn, name, value);
        if (!moved || !contains(*moved)) continue;
        row.push_back(static_cast<int>(design.points.size()));
        design.points.push_back(std::move(*moved));
      }
      if (row.empty()) row.push_back(i);
      axis.rows.push_back(std::move(row));
    }
    design.axes.push_back(std::move(axis));
  }
  return design;
}

SobolIndices sobol_indices(const SobolDesign& design, const Eigen::VectorXd& values) {
  const Part all = part_of(design, 0, 1);
  return indices_of(all.population, all.axes, design.sampled, values);
}

double sampling_error(const SobolDesign& design, const Eigen::VectorXd& values) {
  if (!design.sampled) return 0.0;
  const auto axes = static_cast<Eigen::Index>(design.axes.size());
  Eigen::MatrixXd each(2 * axes, kBatches);
  for (int batch = 0; batch < kBatches; ++batch) {
    const Part part = part_of(design, batch, kBatches);
    const SobolIndices indices = indices_of(part.population, part.axes, true, values);
    each.col(batch) << indices.first_order, indices.total;
  }
  const Eigen::ArrayXXd deviations = (each.colwise() - each.rowwise().mean()).array();
  return (deviations.square().rowwise().sum() / (kBatches - 1.0) / kBatches).sqrt().maxCoeff();
}

}  // namespace krigtune::insight
