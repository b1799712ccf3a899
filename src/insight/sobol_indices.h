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

/// A parameter, or several that constraints tie together so that none of them can change while all others stay: with
/// `a * b == 16` a and b are one axis, whose values are the pairs that the constraint allows.
struct SobolAxis {
  std::vector<std::string> names;
  std::vector<PointSet> rows;            ///< configurations that differ in this axis alone, all that there are
  std::vector<std::vector<int>> levels;  ///< of each point of each row which value of this axis it has
  int level_count = 0;
  std::string name() const;  ///< "a", "a and b"
};

/// Four configurations that agree in all but two parameters, as indices into SobolDesign::points.
struct Rectangle {
  int corner = 0;
  int other_a = 0;  ///< the first parameter has another value
  int other_b = 0;  ///< the second one has
  int both = 0;
};
struct SobolPair {
  std::size_t a = 0, b = 0;  ///< indices into SobolDesign::axes
  std::vector<Rectangle> rectangles;
};

/// At which configurations a function must be known, and how its values are put together.
struct SobolDesign {
  std::vector<space::Configuration> points;
  int population = 0;    ///< points [0, population) stand for all configurations, with equal weights
  bool sampled = false;  ///< drawn with replacement; else all of them, and rows are a partition of them
  std::vector<SobolAxis> axes;
  std::vector<SobolPair> pairs;  ///< add_pairs
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

/// Adds all pairs of the named axes that are one parameter, with rectangles that are drawn at random, and the points
/// that those need. Pairs that constraints leave next to no rectangles are left out.
void add_pairs(const space::Space& space, const space::Space::Predicate& contains,
               const std::vector<std::string>& names, SobolDesign& design, Rng& rng);

/// See importance.cpp. All but the variance are shares of it.
struct SobolIndices {
  double variance = 0.0;        ///< of the function over the population
  Eigen::VectorXd first_order;  ///< one an axis; never above its total
  Eigen::VectorXd total;
  Eigen::VectorXd pairs;  ///< one a pair: the interaction of both, those with third parameters in it
};
/// `values`: one a point.
SobolIndices sobol_indices(const SobolDesign& design, const Eigen::VectorXd& values);

/// Largest standard error of any index from having drawn the population; 0 when not sampled.
double sampling_error(const SobolDesign& design, const Eigen::VectorXd& values);

/// `configuration` with other values of the named parameters and nothing else changed (gradient accumulation follows).
/// Empty: there is no such configuration.
std::optional<space::Configuration> with_values(const space::Space& space, const space::Configuration& configuration,
                                                const std::vector<std::string>& names,
                                                const std::vector<space::Value>& values);
/// All configurations that differ from this one in the named parameters alone, at the levels of each (levels_of). Empty
/// where several parameters have more than 150 combinations.
std::vector<space::Configuration> neighbours(const space::Space& space, const space::Configuration& configuration,
                                             const std::vector<std::string>& names);
/// The parameter's values; of more than twelve, and of a real range on its scale, nine evenly spaced.
std::vector<space::Value> levels_of(const space::Parameter& parameter);

}  // namespace krigtune::insight
