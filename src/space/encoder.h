#pragma once
#include <vector>

#include "space/space.h"

namespace krigtune::space {

/// A configuration as a point for the surrogate.
struct EncodedPoint {
  /// One column per ordered parameter: [0, 1] over its values, outside [0, 1] for values outside, and 0.5 if it does
  /// not exist.
  std::vector<double> ordered;
  /// One index per categorical parameter. A value outside the list has the list's size as its index; a parameter that
  /// does not exist has one more.
  std::vector<int> categories;
};

/// Converts between configurations and points; nothing else knows the scales. decode(encode(c)) == c for every
/// configuration of the space, with continuous values equal to 1e-12 of their range. Parameters with a single value
/// have no column, nor has a derived gradient_accumulation_steps.
class Encoder {
 public:
  /// Copies what it needs from the space.
  explicit Encoder(const Space& space);

  int ordered_dims() const { return static_cast<int>(ordered_.size()); }
  int category_dims() const { return static_cast<int>(categorical_.size()); }
  /// Encodes a configuration. Values outside a list or range (for example a baseline's) are placed between or beyond
  /// their neighbours.
  EncodedPoint encode(const Configuration& configuration) const;
  /// Returns the configuration nearest to the point, column by column, completed. If those values together are not a
  /// configuration, it returns the nearest one of the whole space or, if the space is too large to list, one nearby.
  Configuration decode(const EncodedPoint& point) const;
  /// Returns the names of the ordered columns, in order.
  std::vector<std::string> ordered_names() const;
  const Parameter& ordered_parameter(int column) const;
  const Parameter& category_parameter(int column) const;
  /// Returns the number at a position of an ordered column; between and beyond the values it is interpolated.
  double number_on_axis(int column, double at) const;

 private:
  Configuration nearest_configuration(const EncodedPoint& point) const;
  Configuration near_configuration(const EncodedPoint& point) const;

  Space space_;
  std::vector<int> ordered_;      ///< indices into space_.parameters()
  std::vector<int> categorical_;  ///< indices into space_.parameters()
};

}  // namespace krigtune::space
