#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/space/space.h"

namespace krigtune {

/// Further ordered columns of the surrogate's points: what follows from several parameters together and says more of a
/// trial than each of them. Private to this layer.
class DerivedColumns {
 public:
  explicit DerivedColumns(const Space& space);

  Eigen::Index size() const { return static_cast<Eigen::Index>(products_.size()); }
  /// One row a configuration; over the space they span [0, 1].
  Eigen::MatrixXd encode(const std::vector<Configuration>& configurations) const;

 private:
  /// log2 of a product of parameters, scaled to its range in the space.
  struct Product {
    std::vector<std::string> names;
    double low = 0.0;
    double width = 1.0;
  };
  std::vector<Product> products_;
};

}  // namespace krigtune
