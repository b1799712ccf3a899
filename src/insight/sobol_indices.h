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

/// A parameter, or several that constraints tie together so that none can change while the others stay. With `a * b ==
/// 16`, a and b are one axis, whose values are the pairs that the constraint allows.
struct SobolAxis {
  std::vector<std::string> names;
  std::vector<PointSet> rows;            ///< complete sets of configurations that differ only in this axis
  std::vector<std::vector<int>> levels;  ///< for each point of each row, the index of its value on this axis
  int level_count = 0;
  std::string name() const;  ///< "a", "a and b"
};

/// Four configurations that agree in all but two parameters, as indices into SobolDesign::points.
struct Rectangle {
  int corner = 0;
  int other_a = 0;  ///< another value of the first parameter
  int other_b = 0;  ///< another value of the second parameter
  int both = 0;
};
struct SobolPair {
  std::size_t a = 0, b = 0;  ///< indices into SobolDesign::axes
  std::vector<Rectangle> rectangles;
};

/// The configurations at which a function must be known, and how its values are combined.
struct SobolDesign {
  std::vector<space::Configuration> points;
  int population = 0;  ///< points [0, population) represent all configurations, with equal weights
  /// Drawn with replacement; otherwise they are all configurations, and the rows are a partition of them.
  bool sampled = false;
  std::vector<SobolAxis> axes;
  std::vector<SobolPair> pairs;  ///< filled by add_pairs
};

/// Returns the names of the parameters that can vary independently: without gradient_accumulation_steps if it follows
/// from the micro-batch.
std::vector<std::string> free_parameters(const space::Space& space);

/// Makes a design from the complete list of configurations.
SobolDesign listed_design(const space::Space& space, std::vector<space::Configuration> configurations);

struct SampleSize {
  int population = 2000;
  int rows = 500;  ///< for each parameter: the number of points of the population whose rows are listed
};
/// `draw` returns a random member of the population; `contains` returns whether a configuration belongs to it.
SobolDesign sampled_design(const space::Space& space, const std::function<space::Configuration()>& draw,
                           const space::Space::Predicate& contains, const SampleSize& size = {});

/// Adds all pairs of the named axes that are single parameters, with randomly drawn rectangles and the points that
/// these need. Pairs for which constraints leave almost no rectangles are left out.
void add_pairs(const space::Space& space, const space::Space::Predicate& contains,
               const std::vector<std::string>& names, SobolDesign& design, Rng& rng);

/// See importance.cpp. All fields except the variance are shares of it.
struct SobolIndices {
  double variance = 0.0;        ///< variance of the function over the population
  Eigen::VectorXd first_order;  ///< one per axis; never larger than its total
  Eigen::VectorXd total;
  Eigen::VectorXd pairs;  ///< one per pair: the interaction of the two, including interactions with third parameters
};
/// `values`: one per point.
SobolIndices sobol_indices(const SobolDesign& design, const Eigen::VectorXd& values);

/// Returns the largest standard error of any index due to drawing the population; 0 if not sampled.
double sampling_error(const SobolDesign& design, const Eigen::VectorXd& values);

/// Returns `configuration` with other values of the named parameters and nothing else changed, except that gradient
/// accumulation follows. Empty if that is not a configuration.
std::optional<space::Configuration> with_values(const space::Space& space, const space::Configuration& configuration,
                                                const std::vector<std::string>& names,
                                                const std::vector<space::Value>& values);
/// Returns all configurations that differ from this one only in the named parameters, at the levels of each
/// (levels_of). Empty if several parameters have more than 150 combinations.
std::vector<space::Configuration> neighbours(const space::Space& space, const space::Configuration& configuration,
                                             const std::vector<std::string>& names);
/// Returns the parameter's values; nine evenly spaced ones if it has more than twelve or is continuous.
std::vector<space::Value> levels_of(const space::Parameter& parameter);

}  // namespace krigtune::insight
