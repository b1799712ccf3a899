#pragma once
#include <vector>

#include "space/space.h"

namespace krigtune::space {

/// A configuration as the surrogate sees it.
struct EncodedPoint {
  /// One column per ordered parameter: [0, 1] over its values, beyond for values outside, 0.5 where it does not exist.
  std::vector<double> ordered;
  /// One index per categorical parameter; a value outside the list: the list's size; one more where it does not exist.
  std::vector<int> categories;
};

/// The one place that knows scales. decode(encode(c)) == c for every configuration of the space; real values to 1e-12
/// of their range. Parameters of a single value have no column. Derived gradient_accumulation_steps has none either.
class Encoder {
 public:
  /// Copies what it needs.
  explicit Encoder(const Space& space);

  int ordered_dims() const { return static_cast<int>(ordered_.size()); }
  int category_dims() const { return static_cast<int>(categorical_.size()); }
  /// Values that lie outside a list or range (a baseline's) are placed between or beyond their neighbours.
  EncodedPoint encode(const Configuration& configuration) const;
  /// The configuration of the space nearest to the point, column by column, completed; where those values together are
  /// none, the nearest one of all, and in a space that is too large to be listed one that is near.
  Configuration decode(const EncodedPoint& point) const;
  /// Names of the ordered columns, in order.
  std::vector<std::string> ordered_names() const;

 private:
  Configuration nearest_configuration(const EncodedPoint& point) const;
  Configuration near_configuration(const EncodedPoint& point) const;

  Space space_;
  std::vector<int> ordered_;      ///< indices into space_.parameters()
  std::vector<int> categorical_;  ///< likewise
};

}  // namespace krigtune::space
