#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// Prior mean m(x) = h(x)^T beta with beta ~ Normal(centre, diag(stddev^2)), integrated out in closed form (universal
/// kriging with a proper prior: O'Hagan 1978; Rasmussen & Williams 2006, section 2.7). The basis h is [1, features], or
/// empty.
class Mean {
 public:
  static Mean zero();
  /// a ~ Normal(0, stddev^2).
  static Mean constant(double stddev = 1.0);
  /// a + sum_k b_k * feature_k with a, b_k ~ Normal(0, .) and `count` features.
  static Mean linear(Eigen::Index count, double offset_stddev = 1.0, double slope_stddev = 1.0);
  /// a + b f(x), where f(x) is the only feature of the points, a ~ Normal(0, .) and b ~ Normal(1, scale_stddev^2). The
  /// feature is a user's own model of the function; the data reduce its weight where it is wrong.
  static Mean scaled(double offset_stddev = 1.0, double scale_stddev = 0.2);

  /// a + sum_k b_k * feature_k with a ~ Normal(0, .), b_k ~ Normal(centre_k, stddev_k^2).
  static Mean weighted(double offset_stddev, const Eigen::VectorXd& centre, const Eigen::VectorXd& stddev);

  /// Throws UserError unless the points have the features that the mean needs.
  void validate(const Points& points) const;
  /// Returns h for all points, n x p; calls validate().
  Eigen::MatrixXd basis(const Points& points) const;
  const Eigen::VectorXd& centre() const { return centre_; }  ///< p
  const Eigen::VectorXd& stddev() const { return stddev_; }  ///< p
  Eigen::Index features() const;                             ///< p - 1, or 0
  /// Returns whether the features are predictions of the function itself, in its units.
  bool predicts_the_function() const { return centre_.size() == 2 && centre_[1] == 1.0; }

 private:
  Mean(Eigen::VectorXd centre, Eigen::VectorXd stddev);

  Eigen::VectorXd centre_;
  Eigen::VectorXd stddev_;
};

}  // namespace krigtune::surrogate
