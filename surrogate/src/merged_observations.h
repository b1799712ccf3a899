#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// The distinct points of some observations, in the order of their first appearance. With noise variance s, the
/// observations i of one point are equivalent to a single value ybar = sum_i w_i y_i / w of variance 1 / w, where w_i =
/// 1 / (variance_i + s) and w = sum_i w_i. This is exact for a Gaussian process with known noise.
class MergedObservations {
 public:
  explicit MergedObservations(const Observations& observations);

  const Points& points() const { return points_; }
  Eigen::Index size() const { return points_.size(); }

  struct Values {
    Eigen::VectorXd mean;      ///< ybar
    Eigen::VectorXd variance;  ///< 1 / w, noise included
    double log_spread = 0.0;   ///< log density of all observations minus that of the merged ones
    // Derivatives with respect to the noise variance.
    Eigen::VectorXd mean_slope;
    Eigen::VectorXd variance_slope;
    double log_spread_slope = 0.0;
  };
  Values at(double noise_variance) const;

 private:
  Points points_;
  std::vector<std::vector<Eigen::Index>> groups_;
  Eigen::VectorXd values_;
  Eigen::VectorXd variance_;
};

}  // namespace krigtune::surrogate
