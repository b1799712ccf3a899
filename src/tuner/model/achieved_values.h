#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/surrogate.h"

namespace krigtune {

/// What the measured configurations achieve, as distinct from what one measurement of them said and from what their
/// neighbours make of them. In latent units. Private to this layer.
class AchievedValues {
 public:
  /// `points`: of the configurations; `measurement`: the variance of each one's observed value about what it achieves.
  /// The rest of the noise that `surrogate` knows is theirs to keep. `offset` is added to means. `runs`: a row each,
  /// the part of the observed value that is the clock's, times independent standard normal numbers that they share.
  /// `surrogate` must outlive it and stay as it is.
  AchievedValues(const Surrogate& surrogate, const Points& points, const Eigen::VectorXd& measurement,
                 double offset = 0.0, const Eigen::MatrixXd& runs = {});

  const Eigen::VectorXd& mean() const { return mean_; }
  const Eigen::MatrixXd& covariance() const { return covariance_; }
  /// With what another point achieves.
  Eigen::VectorXd covariance_with(const Points& point) const;

 private:
  const Surrogate& surrogate_;
  std::vector<Eigen::Index> rows_;  ///< of the surrogate's process
  Eigen::MatrixXd measurement_;     ///< covariance of observed values about what is achieved, standardised
  Eigen::VectorXd mean_;
  Eigen::MatrixXd covariance_;
};

}  // namespace krigtune
