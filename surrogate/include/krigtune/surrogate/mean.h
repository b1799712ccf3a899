#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// Prior mean m(x) = h(x)^T beta with beta ~ Normal(centre, diag(stddev^2)), integrated out in closed form (universal
/// kriging with a proper prior: O'Hagan 1978; Rasmussen & Williams 2006, section 2.7). h is [1, features], or nothing.
class Mean {
 public:
  static Mean zero();
  /// a ~ Normal(0, stddev^2).
  static Mean constant(double stddev = 1.0);
  /// a + sum_k b_k * feature_k, with a, b_k ~ Normal(0, .): `count` features.
  static Mean linear(Eigen::Index count, double offset_stddev = 1.0, double slope_stddev = 1.0);
  /// a + b f(x) with f(x) the points' one feature, a ~ Normal(0, .), b ~ Normal(1, scale_stddev^2): a user's own model
  /// of the function, which the data discount where it is wrong.
  static Mean scaled(double offset_stddev = 1.0, double scale_stddev = 0.2);

  /// a + sum_k b_k * feature_k with a ~ Normal(0, .), b_k ~ Normal(centre_k, stddev_k^2).
  static Mean weighted(double offset_stddev, const Eigen::VectorXd& centre, const Eigen::VectorXd& stddev);

  /// UserError unless the points have the features that it needs.
  void validate(const Points& points) const;
  /// h, n x p; validates.
  Eigen::MatrixXd basis(const Points& points) const;
  const Eigen::VectorXd& centre() const { return centre_; }  ///< p
  const Eigen::VectorXd& stddev() const { return stddev_; }  ///< p
  Eigen::Index features() const;                             ///< p - 1, or 0
  /// Whether the features are predictions of the function itself, in its units.
  bool predicts_the_function() const { return centre_.size() == 2 && centre_[1] == 1.0; }

 private:
  Mean(Eigen::VectorXd centre, Eigen::VectorXd stddev);

  Eigen::VectorXd centre_;
  Eigen::VectorXd stddev_;
};

}  // namespace krigtune::surrogate
