#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// More observations than a Cholesky factor can hold, beside a process that has observed some of the data. A point is
/// predicted from all that the process has observed and from the few others whose covariance with it is the largest:
///
///   process.condition(backbone, theta);                      // a few hundred
///   const NearbyObservations rest(process, others, 16);      // any number
///   const Prediction prediction = rest.predict(process, points);
///
/// Each prediction is an exact posterior given a part of the data. So its variance is never below the posterior's given
/// all data, and by the law of total variance the expected square of what its mean lacks is the difference of the two
/// variances. Where the neighbours and the backbone are all there is, it is the exact posterior.
class NearbyObservations {
 public:
  /// O(n M^2) for n observations beside M of the process, 8 n M bytes. The process has common noise; theirs is added.
  NearbyObservations(const GaussianProcess& process, const Observations& observations, Eigen::Index neighbours);

  /// More of them. `process`: as it was when this was made; so for predict.
  void append(const GaussianProcess& process, const Observations& more);
  /// O(M^2 + n d + k^2 M + k^3) a point with k neighbours.
  Prediction predict(const GaussianProcess& process, const Points& points) const;
  Eigen::Index size() const { return points_.size(); }
  const Points& points() const { return points_; }

 private:
  void refine(const GaussianProcess& process, const Points& point, const Eigen::VectorXd& covariances,
              const Eigen::VectorXd& whitened, double& mean, double& variance) const;

  Eigen::Index neighbours_;
  Points points_;
  Eigen::VectorXd noise_;      ///< n, with the process's own
  Eigen::MatrixXd whitened_;   ///< M x n: L^-1 C(X, .)
  Eigen::VectorXd residuals_;  ///< n: values less what the process predicts of them
};

}  // namespace krigtune::surrogate
