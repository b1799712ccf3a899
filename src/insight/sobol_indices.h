#pragma once
#include <Eigen/Core>
#include <functional>
#include <string>
#include <vector>

#include "krigtune/rng.h"
#include "space/space.h"

// First-order and total Sobol indices over configurations, see importance.cpp.
namespace krigtune::insight {

/// Indices into SobolDesign::points.
using PointSet = std::vector<int>;

struct SobolAxis {
  std::string name;
  std::vector<PointSet> levels;  ///< the population, by the value of this parameter
  std::vector<PointSet> rows;    ///< configurations that differ in this parameter alone, all that there are
};

/// At which configurations a function must be known, and how its values are put together.
struct SobolDesign {
  std::vector<space::Configuration> points;
  int population = 0;    ///< points [0, population) stand for all configurations, with equal weights
  bool sampled = false;  ///< drawn with replacement; else all of them, and rows are a partition of them
  std::vector<SobolAxis> axes;
};

/// Names of the parameters that may vary by themselves: not gradient_accumulation_steps where it follows the
/// micro-batch.
std::vector<std::string> free_parameters(const space::Space& space);

/// All configurations are given.
SobolDesign listed_design(const space::Space& space, std::vector<space::Configuration> configurations);

struct SampleSize {
  int population = 2000;
  int rows = 500;  ///< of a parameter: as many of the population have theirs listed
};
/// `draw` draws one of the population; `contains`: whether a configuration belongs to it.
SobolDesign sampled_design(const space::Space& space, const std::function<space::Configuration()>& draw,
                           const space::Space::Predicate& contains, const SampleSize& size = {});

struct SobolIndices {
  double variance = 0.0;        ///< of the function over the population
  Eigen::VectorXd first_order;  ///< one an axis
  Eigen::VectorXd total;
};
/// `values`: one a point.
SobolIndices sobol_indices(const SobolDesign& design, const Eigen::VectorXd& values);

/// Largest standard error of any index from having drawn the population; 0 when not sampled.
double sampling_error(const SobolDesign& design, const Eigen::VectorXd& values);

/// `configuration` with another value of the parameter and nothing else changed (gradient accumulation follows). Empty:
/// there is no such configuration.
std::optional<space::Configuration> with_value(const space::Space& space, const space::Configuration& configuration,
                                               const std::string& name, const space::Value& value);
/// The parameter's values; of more than twelve, and of a real range on its scale, nine evenly spaced.
std::vector<space::Value> levels_of(const space::Parameter& parameter);

}  // namespace krigtune::insight
