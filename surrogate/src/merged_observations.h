#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// Distinct points of some observations, in the order of their first appearance. At a noise variance s, observations
/// i of one point are together one of value ybar = sum_i w_i y_i / w, variance 1 / w, w_i = 1 / (variance_i + s),
/// w = sum_i w_i: exact for a Gaussian process whose noise is known.
class MergedObservations {
 public:
  explicit MergedObservations(const Observations& observations);

  const Points& points() const { return points_; }
  Eigen::Index size() const { return points_.size(); }

  struct Values {
    Eigen::VectorXd mean;      ///< ybar
    Eigen::VectorXd variance;  ///< 1 / w: noise included
    double log_spread = 0.0;   ///< log density of all observations less that of the merged ones
    // Derivatives by the noise variance.
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
